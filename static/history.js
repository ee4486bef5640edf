/** What was translated before, kept in this browser; can be switched off. */

import { el, openDialog } from "./dom.js";
import { language, t } from "./i18n.js";
import { get, keep, on, set } from "./state.js";

const MOST_ENTRIES = 60;
const REST_MS = 1500; // a text counts once it has been left alone for so long

keep("history", []);
keep("remember", true);

/** Note every translation that rests for a moment. */
export function watchHistory(translation) {
  let timer = 0;
  on("phase", (phase) => {
    clearTimeout(timer);
    if (phase === "done") timer = setTimeout(() => note(translation()), REST_MS);
  });
}

function note(translated) {
  const text = get("text").trim();
  if (!get("remember") || !text || !translated) return;
  const entry = { text, translation: translated, source: get("source"), target: get("target"), time: Date.now() };
  const others = get("history").filter((old) => !isEarlierForm(old, entry));
  set("history", [entry, ...others].slice(0, MOST_ENTRIES));
}

/** The same text while it was still being typed. */
const isEarlierForm = (old, entry) => old.target === entry.target && (entry.text === old.text
  || (entry.time - old.time < 120_000 && (entry.text.startsWith(old.text) || old.text.startsWith(entry.text))));

/** Open the panel; `restore` is given the entry that is clicked. */
export function openHistory(restore) {
  const list = el("ul.entries");
  const empty = el("p.quiet");
  const toggle = el("input", { type: "checkbox", checked: get("remember"), onchange: () => {
    set("remember", toggle.checked);
    if (!toggle.checked) set("history", []);
    show();
  } });

  function show() {
    empty.textContent = t(get("remember") ? "history.empty" : "history.off");
    empty.hidden = get("history").length > 0;
    list.replaceChildren(...get("history").map(row));
  }

  function row(entry) {
    const when = new Date(entry.time).toLocaleString(language, { dateStyle: "short", timeStyle: "short" });
    return el("li", {},
      el("button.entry", { onclick: () => (dialog.close(), restore(entry)) },
        el("span", {}, entry.text), el("span.quiet", {}, entry.translation), el("span.quiet", {}, when)),
      el("button", { "aria-label": t("remove"), title: t("remove"), onclick: () => {
        set("history", get("history").filter((other) => other !== entry));
        show();
      } }, "✕"));
  }

  const dialog = openDialog("sheet-right", t("history"), t("close"),
    el("label.check", {}, toggle, t("history.keep")),
    empty,
    list,
    el("div.row", {}, el("span.space"), el("button", { onclick: () => (set("history", []), show()) }, t("history.clear"))));
  show();
}
