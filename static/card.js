/** The card of one sentence: its alternatives with their scores, and a field whose beginning the model completes. */

import { translate } from "./api.js";
import { copyText, el, flash } from "./dom.js";
import { number, t } from "./i18n.js";

const MOST_ALTERNATIVES = 3;

/**
 * Open the card.
 *
 * @param {object} options
 * @param {HTMLElement} options.anchor The sentence's element.
 * @param {HTMLElement} options.host The scroller that the card lives in.
 * @param {object} options.segment
 * @param {object} options.request Source, target and glossary of the translation.
 * @param {(text: string | null) => void} options.onChoose Is given the text wanted; null for the machine's own.
 * @param {() => void} options.onClose
 */
export function openCard({ anchor, host, segment, request, onChoose, onClose }) {
  const controller = new AbortController();
  const { signal } = controller;
  const hint = el("p.quiet.hint", { role: "status" }, t("card.searching"));
  const list = el("div", { role: "listbox", tabindex: "0", "aria-label": t("card.alternatives") });
  const field = el("textarea.box", { rows: 1, "aria-label": t("card.edit"), lang: request.target });
  const copy = el("button", { onclick: () => copyText(field.value).then(() => flash(copy, t("copied"))) }, t("copy"));
  const card = el("div.card", { role: "dialog", "aria-label": t("card.title") },
    list,
    field,
    hint,
    el("div.row", {},
      el("button.strong", { onclick: () => choose(field.value) }, t("card.use")),
      copy,
      segment.edited && el("button", { onclick: () => choose(null) }, t("card.restore")),
      el("span.space"),
      el("button", { onclick: () => close() }, t("close"))));
  const options = [];
  let selected = -1;
  field.value = segment.target;

  function close() {
    if (signal.aborted) return;
    controller.abort();
    card.remove();
    document.removeEventListener("pointerdown", leave);
    onClose();
  }

  const leave = (event) => !card.contains(event.target) && !anchor.contains(event.target) && close();

  function choose(text) {
    close();
    onChoose(text?.trim() ? text.trim() : null);
  }

  function select(index) {
    selected = Math.min(Math.max(index, 0), options.length - 1);
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === selected)));
    list.setAttribute("aria-activedescendant", options[selected]?.id ?? "");
    options[selected]?.scrollIntoView({ block: "nearest" });
    field.value = options[selected]?.dataset.text ?? field.value;
  }

  function offer(candidates) {
    candidates.forEach(({ target, score }, index) => {
      const option = el("div", {
        role: "option", id: `option-${index}`, "aria-selected": "false", "data-text": target,
        onclick: () => choose(target),
      }, el("span", { lang: request.target }, target), el("span.score", { title: t("card.score") }, number(score, 2)));
      options.push(option);
      list.append(option);
    });
    hint.textContent = t(candidates.length > 1 ? "card.hint" : "card.alone");
    const current = candidates.findIndex((candidate) => candidate.target === segment.target);
    const typed = field.value;
    select(Math.max(current, 0));
    field.value = typed;
  }

  async function ask(extra) {
    const { source, target, glossary } = request;
    return translate({ text: segment.source, source, target, ...(glossary && { glossary }), ...extra }, signal);
  }

  async function loadAlternatives() {
    const response = await ask({ alternatives: MOST_ALTERNATIVES, segments: true });
    const best = { target: response.translation, score: response.segments[0]?.score ?? 0 };
    const others = response.segments.length === 1 ? response.segments[0].alternatives ?? [] : [];
    offer([best, ...others]);
  }

  async function finish() {
    const prefix = field.value.slice(0, field.selectionStart);
    hint.textContent = t("card.finishing");
    const { translation } = await ask({ target_prefix: prefix });
    field.value = translation;
    field.setSelectionRange(prefix.length, translation.length);
    hint.textContent = t("card.finished");
  }

  const attempt = (work) => work().catch((error) => {
    if (!signal.aborted) hint.textContent = error.message || t("problem.offline");
  });

  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const picked = /^[1-9]$/.test(event.key) && options[Number(event.key) - 1];
    if (step) select(selected + step);
    else if (picked) choose(picked.dataset.text);
    else if (event.key === "Enter" && options[selected]) choose(options[selected].dataset.text);
    else return;
    event.preventDefault();
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Tab" && !event.shiftKey && field.selectionStart > 0) attempt(finish);
    else if (event.key === "Enter" && !event.shiftKey) choose(field.value);
    else return;
    event.stopPropagation(); // Ctrl+Enter keeps the sentence here, it does not translate
    event.preventDefault();
  });
  card.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
    anchor.focus();
  });

  host.append(card);
  place(card, anchor, host);
  list.focus({ preventScroll: true });
  setTimeout(() => document.addEventListener("pointerdown", leave));
  attempt(loadAlternatives).then(() => card.scrollIntoView({ block: "nearest" }));
  return { close };
}

function place(card, anchor, host) {
  const frame = host.getBoundingClientRect();
  const rects = anchor.getClientRects();
  const last = rects[rects.length - 1];
  const left = Math.min(Math.max(rects[0].left - frame.left, 8), frame.width - card.offsetWidth - 8);
  card.style.top = `${last.bottom - frame.top + host.scrollTop + 6}px`;
  card.style.left = `${Math.max(left, 8)}px`;
}
