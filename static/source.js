/**
 * The source pane: a textarea, and a mirror of it beneath, in which a sentence can be tinted and measured.
 * The mirror is filled only when somebody points or scrolls, never while typing.
 */

import { $ } from "./dom.js";
import { indexAt } from "./segments.js";

const TINT = "sentence";

/** @param {() => Array} segments Gives the sentences on the screen. */
export function createSource(segments, onHover) {
  const area = $("#source");
  const mirror = $("#view-translate .mirror");
  const words = mirror.appendChild(document.createTextNode(""));

  function rangeOf(index) {
    const { start, end } = segments()[index];
    if (words.data !== area.value) words.data = area.value;
    const range = document.createRange();
    range.setStart(words, Math.min(start, words.length));
    range.setEnd(words, Math.min(end, words.length));
    return range;
  }

  /** Say on which side of a sentence a point lies: -1, 0 or 1. */
  function sideOf(index, x, y) {
    const rects = rangeOf(index).getClientRects();
    if (!rects.length) return -1;
    const first = rects[0];
    const last = rects[rects.length - 1];
    if (y < first.top || (y <= first.bottom && x < first.left)) return -1;
    if (y > last.bottom || (y >= last.top && x > last.right)) return 1;
    return 0;
  }

  function indexAtPoint(x, y) {
    let low = 0;
    let high = segments().length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const side = sideOf(middle, x, y);
      if (side === 0) return middle;
      if (side < 0) high = middle - 1;
      else low = middle + 1;
    }
    return -1;
  }

  let pointer = null;
  area.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    if (!pointer) requestAnimationFrame(() => {
      if (pointer) onHover(indexAtPoint(pointer.clientX, pointer.clientY));
      pointer = null;
    });
    pointer = event;
  });
  area.addEventListener("pointerleave", () => {
    pointer = null;
    onHover(-1);
  });
  const followCaret = () => onHover(indexAt(segments(), area.selectionStart));
  area.addEventListener("click", followCaret);
  area.addEventListener("keyup", (event) => /^(Arrow|Home|End|Page)/.test(event.key) && followCaret());

  return {
    area,
    /** Tint a sentence; none for -1. */
    highlight(index) {
      if (!("highlights" in CSS)) return;
      if (index < 0) CSS.highlights.delete(TINT);
      else CSS.highlights.set(TINT, new Highlight(rangeOf(index)));
    },
    /** Distance of a sentence from the top of the window. */
    top: (index) => rangeOf(index).getBoundingClientRect().top,
  };
}
