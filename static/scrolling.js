/** Keeps two panes at the same sentence while one of them is scrolled. */

const QUIET_MS = 120;

/**
 * @param {HTMLElement} left Scroller of the source.
 * @param {HTMLElement} right Scroller of the target.
 * @param {{top: (index: number) => number, area: HTMLElement}} source Measures sentences in the source.
 * @param {{top: (index: number) => number}} target The same in the target.
 * @param {() => number} count How many sentences there are.
 */
export function linkScrolling(left, right, source, target, count) {
  let led = null; // the pane that follows just now
  let until = 0;
  let typedAt = 0;
  source.area.addEventListener("input", () => (typedAt = performance.now()));

  function follow(from, to, fromTop, toTop) {
    const now = performance.now();
    if ((led === from && now < until) || now - typedAt < 500 || !count()) return;
    led = to;
    until = now + QUIET_MS;
    to.scrollTop = placeFor(from, to, fromTop, toTop);
  }

  function placeFor(from, to, fromTop, toTop) {
    if (from.scrollTop <= 0) return 0;
    if (from.scrollTop >= from.scrollHeight - from.clientHeight - 1) return to.scrollHeight;
    const edge = from.getBoundingClientRect().top;
    let low = 0;
    let high = count() - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (fromTop(middle) <= edge) low = middle;
      else high = middle - 1;
    }
    const next = Math.min(low + 1, count() - 1);
    const share = next === low ? 0 : (edge - fromTop(low)) / Math.max(fromTop(next) - fromTop(low), 1);
    const there = toTop(low) + Math.min(Math.max(share, 0), 1) * (toTop(next) - toTop(low));
    return to.scrollTop + there - to.getBoundingClientRect().top;
  }

  left.addEventListener("scroll", () => follow(left, right, source.top, target.top), { passive: true });
  right.addEventListener("scroll", () => follow(right, left, target.top, source.top), { passive: true });
}
