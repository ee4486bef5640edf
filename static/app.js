/** Start: the header, the views, the shortcuts. */

import { setUpApiPanel } from "./api-panel.js";
import { untilReady } from "./api.js";
import { $, el, openDialog } from "./dom.js";
import { language, t } from "./i18n.js";
import { get, on, set } from "./state.js";
import { copyResult, currentCall, setUpTranslate, swap } from "./translate.js";
import { refresh } from "./translator.js";

const YEAR_S = 31_536_000;
const LATER = { documents: "./documents.js", embeddings: "./embeddings.js", status: "./status.js" };
const NOTHING_YET = { ready: false, directions: [], languages: [], max_chars: 20_000 };

const views = { translate: { currentCall } };
let current = "translate";

const remember = (name, value) =>
  (document.cookie = `tandem_${name}=${value}; path=/; max-age=${value ? YEAR_S : 0}; samesite=lax`);

function setUpHeader() {
  $("#language").addEventListener("click", () => {
    remember("language", language === "zh" ? "en" : "zh");
    location.reload();
  });
  $("#theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const opposite = isDark ? "light" : "dark";
    if (root.dataset.theme) delete root.dataset.theme; // back to the system's
    else root.dataset.theme = opposite;
    remember("theme", root.dataset.theme ?? "");
    set("theme", root.dataset.theme);
  });
  $("#open-help").addEventListener("click", showHelp);
}

function showHelp() {
  const keys = [
    ["Ctrl / ⌘ + Enter", "key.translate"], ["Ctrl / ⌘ + Shift + C", "key.copy"], ["Alt + S", "key.swap"],
    ["← →", "key.sentences"], ["Enter", "key.alternatives"], ["↑ ↓", "key.walk"], ["Tab", "key.finish"],
    ["Esc", "key.leave"], ["?", "key.help"],
  ];
  openDialog("middle", t("shortcuts"), t("close"),
    el("dl.keys", {}, ...keys.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, t(text))])));
}

function setUpShortcuts() {
  addEventListener("keydown", (event) => {
    const hasCommand = event.ctrlKey || event.metaKey;
    const isTyping = event.target.matches?.("textarea, input, select");
    if (event.key === "?" && !isTyping && !$("dialog[open]")) showHelp();
    else if (current !== "translate" || $("dialog[open]")) return;
    else if (hasCommand && event.key === "Enter") refresh({ now: true });
    else if (hasCommand && event.shiftKey && event.code === "KeyC") copyResult();
    else if (event.altKey && event.code === "KeyS") swap();
    else return;
    event.preventDefault();
  });
}

/** Show the view that the address names; the others' code is loaded when they are first opened. */
async function route(showCall) {
  const wanted = location.hash.slice(1);
  const name = wanted in LATER ? wanted : "translate";
  const before = current;
  current = name;
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== `view-${name}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (before !== name) views[before]?.leave?.();
  if (!(name in views)) {
    const module = await import(LATER[name]);
    views[name] ??= module.setUp($(`#view-${name}`));
  }
  views[name].enter?.();
  $("#api").hidden = !views[name].currentCall;
  showCall();
}

async function start() {
  set("page", NOTHING_YET);
  setUpTranslate();
  setUpHeader();
  setUpShortcuts();
  const showCall = setUpApiPanel(() => views[current].currentCall());
  on(["text", "source", "target", "glossary", "call"], showCall);
  addEventListener("hashchange", () => route(showCall));
  await route(showCall);
  const page = await untilReady(undefined, (reason) => set("problem", { code: reason ? "not_ready" : "offline", reason }));
  set("problem", null);
  set("page", page);
  if (get("text").trim()) refresh({ now: true });
}

start();
