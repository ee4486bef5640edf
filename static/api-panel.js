/** The panel that shows the request behind what is on the screen. */

import { $, copyText, el, flash } from "./dom.js";
import { t } from "./i18n.js";
import { snippets } from "./snippets.js";
import { keep, get, set } from "./state.js";

keep("snippet", "curl");

/** @param {() => object} currentCall Gives the call of the view that is open. Returns a function to show it anew. */
export function setUpApiPanel(currentCall) {
  const panel = $("#api");
  const code = el("pre", { tabindex: "0", id: "snippet", role: "tabpanel", "aria-label": t("api.title") });
  const names = ["curl", "Python", "JavaScript"];
  const tabs = names.map((name) =>
    el("button", { role: "tab", "aria-controls": "snippet", onclick: () => choose(name) }, name));
  const copy = el("button", { onclick: () => copyText(code.textContent).then(() => flash(copy, t("copied"))) }, t("copy"));
  const list = el("div", { role: "tablist", "aria-label": t("api.title") }, ...tabs);
  panel.append(el("div.row", {}, list, el("span.space"), copy), code);

  function choose(name) {
    set("snippet", name);
    refresh();
  }

  function refresh() {
    if (!panel.open) return;
    names.forEach((name, index) => {
      const isChosen = name === get("snippet");
      tabs[index].setAttribute("aria-selected", String(isChosen));
      tabs[index].tabIndex = isChosen ? 0 : -1;
    });
    const text = snippets(currentCall(), location.origin)[get("snippet")];
    if (code.textContent !== text) code.textContent = text;
  }

  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (names.indexOf(get("snippet")) + step + names.length) % names.length;
    choose(names[next]);
    tabs[next].focus();
  });
  panel.addEventListener("toggle", () => {
    refresh();
    if (panel.open) panel.scrollIntoView({ block: "nearest" });
  });
  return refresh;
}
