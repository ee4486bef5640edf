/** The target pane: one element a sentence; only those that changed are touched. */

import { el } from "./dom.js";

const FLAGS = ["stale", "failed", "edited", "warned"];

/** @param {HTMLElement} root Holds the translation. */
export function createTarget(root, { onHover, onOpen }) {
  const rows = [];
  const tail = root.appendChild(document.createTextNode(""));
  let lit = -1;

  function makeRow() {
    return { gap: document.createTextNode(""), span: el("span.s", { role: "button", tabindex: "-1" }), segment: {} };
  }

  function update(row, segment) {
    if (row.gap.data !== segment.gap) row.gap.data = segment.gap;
    if (row.segment.target !== segment.target) row.span.textContent = segment.target;
    for (const flag of FLAGS) {
      if (Boolean(row.segment[flag]) !== Boolean(segment[flag])) row.span.classList.toggle(flag, Boolean(segment[flag]));
    }
    if (row.segment.note !== segment.note) row.span.title = segment.note ?? "";
    row.segment = segment;
  }

  /** Insert or remove rows behind the common beginning, so that the common end keeps its elements. */
  function resize(count, at) {
    const extra = count - rows.length;
    if (extra < 0) for (const row of rows.splice(at, -extra)) row.gap.remove(), row.span.remove();
    if (extra <= 0) return;
    const fresh = Array.from({ length: extra }, makeRow);
    const next = rows[at]?.gap ?? tail;
    next.before(...fresh.flatMap((row) => [row.gap, row.span]));
    rows.splice(at, 0, ...fresh);
  }

  const isSame = (row, segment) => row.segment.source === segment.source && row.segment.target === segment.target;

  function show(segments, end) {
    let head = 0;
    while (head < rows.length && head < segments.length && isSame(rows[head], segments[head])) head += 1;
    resize(segments.length, head);
    segments.forEach((segment, index) => update(rows[index], segment));
    if (tail.data !== end) tail.data = end;
    if (rows.length && !rows.some((row) => row.span.tabIndex === 0)) rows[0].span.tabIndex = 0;
  }

  function highlight(index) {
    if (index === lit) return;
    rows[lit]?.span.classList.remove("on");
    rows[index]?.span.classList.add("on");
    lit = index;
  }

  const indexOf = (event) => {
    const span = event.target.closest?.(".s");
    return span ? rows.findIndex((row) => row.span === span) : -1;
  };

  function focus(index) {
    const row = rows[index];
    if (!row) return;
    for (const other of rows) if (other.span.tabIndex === 0) other.span.tabIndex = -1;
    row.span.tabIndex = 0;
    row.span.focus();
  }

  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

  root.addEventListener("pointerover", (event) => onHover(indexOf(event)));
  root.addEventListener("pointerleave", () => onHover(-1));
  root.addEventListener("focusin", (event) => onHover(indexOf(event)));
  root.addEventListener("focusout", () => onHover(-1));
  root.addEventListener("click", (event) => {
    if (String(getSelection())) return; // somebody marks text to copy it
    const index = indexOf(event);
    if (index >= 0) onOpen(index);
  });
  root.addEventListener("keydown", (event) => {
    const index = indexOf(event);
    if (index < 0) return;
    if (event.key === "Enter" || event.key === " ") onOpen(index);
    else if (event.key in steps) focus(Math.min(Math.max(index + steps[event.key], 0), rows.length - 1));
    else return;
    event.preventDefault();
  });

  return {
    show,
    highlight,
    focus,
    span: (index) => rows[index]?.span,
    top: (index) => rows[index].span.getBoundingClientRect().top,
  };
}
