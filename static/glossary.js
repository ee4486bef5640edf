/** The glossary: terms and the words wanted for them, kept in this browser and sent with every request. */

import { download, el, openDialog } from "./dom.js";
import { t } from "./i18n.js";
import { get, set } from "./state.js";

/** Open the panel. */
export function openGlossary() {
  const list = el("div.terms");
  const picker = el("input", { type: "file", accept: ".tsv,.csv,.txt", hidden: true, onchange: () => load() });

  function addRow([term, word], isNew = false) {
    const left = el("input", { type: "text", value: term, "aria-label": t("glossary.term"), placeholder: t("glossary.term"), oninput: store });
    const right = el("input", { type: "text", value: word, "aria-label": t("glossary.word"), placeholder: t("glossary.word"), oninput: store });
    const remove = el("button", { "aria-label": t("remove"), title: t("remove"), onclick: () => (row.remove(), store()) }, "✕");
    const row = el("div.row", {}, left, el("span", { "aria-hidden": "true" }, "→"), right, remove);
    list.append(row);
    if (isNew) left.focus();
  }

  function store() {
    set("glossary", [...list.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim())));
  }

  async function load() {
    const lines = (await picker.files[0].text()).split(/\r?\n/);
    for (const line of lines) {
      const [term, word] = line.split(/\t|,/).map((part) => part.trim());
      if (term && word) addRow([term, word]);
    }
    store();
  }

  for (const entry of get("glossary")) addRow(entry);
  const dialog = openDialog("sheet-right", t("glossary"), t("close"),
    el("p.quiet", {}, t("glossary.about")),
    list,
    el("div.row", {},
      el("button.strong", { onclick: () => addRow(["", ""], true) }, t("glossary.add")),
      el("span.space"),
      el("button", { onclick: () => picker.click() }, t("glossary.load")),
      el("button", { onclick: () => download("glossary.tsv", get("glossary").map((entry) => entry.join("\t")).join("\n")) }, t("save"))),
    picker);
  dialog.addEventListener("close", () => set("glossary", get("glossary").filter(([term, word]) => term || word)));
  if (!get("glossary").length) addRow(["", ""], true);
}
