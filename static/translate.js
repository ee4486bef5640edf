/** The translator: wires the two panes, the languages and the buttons to the store. */

import { openCard } from "./card.js";
import { $, announce, copyText, download, el, flash, openDialog } from "./dom.js";
import { openGlossary } from "./glossary.js";
import { openHistory, watchHistory } from "./history.js";
import { hasText, language, number, t } from "./i18n.js";
import { createNotice } from "./notice.js";
import { linkScrolling } from "./scrolling.js";
import { joinTarget } from "./segments.js";
import { createSource } from "./source.js";
import { setUpSpeech } from "./speech.js";
import { get, keep, on, set } from "./state.js";
import { createTarget } from "./target.js";
import { adopt, baseOf, countCharacters, currentRequest, guessLanguage, hasDirection, refresh, resume } from "./translator.js";

const TRADITIONAL = "zh-Hant";
const MOST_CHOICES = 200;
const LARGEST_TEXT_FILE_BYTES = 1 << 20;
const EXAMPLES = {
  zh: "我们的城市很美丽。世界需要和平。谢谢你的帮助。",
  en: "Thank you for your help. He is my friend. Our city is beautiful.",
};

keep("text", "");
keep("source", "auto");
keep("target", "en");
keep("glossary", []);
keep("choices", []); // [what was translated, the reader's own words for it]
keep("draft", { rows: [], tail: "" }); // the result, as short as can be
set("phase", "empty");
set("result", unpack(get("draft"), get("text")));

let source;
let target;
let card = null;
let openIndex = -1;

const keyOf = (segment) => `${get("target")} ${segment.source}`;

function pack({ segments, tail }) {
  return { rows: segments.map(({ target: words, start, end, gap }) => [words, start, end, gap]), tail };
}

function unpack({ rows, tail }, text) {
  const segments = rows.map(([words, start, end, gap]) => ({ source: text.slice(start, end), target: words, start, end, gap }));
  return { segments, tail };
}

/** The sentences as they are shown: with the reader's own choices in place of the machine's. */
function visibleSegments() {
  const choices = new Map(get("choices"));
  return get("result").segments.map((segment) => {
    const chosen = choices.size ? choices.get(keyOf(segment)) : undefined;
    const note = noteOn(segment, chosen);
    return { ...segment, target: chosen ?? segment.target, edited: chosen !== undefined, warned: Boolean(segment.warning), note };
  });
}

function noteOn(segment, chosen) {
  if (segment.failed) return t("note.failed");
  if (chosen !== undefined) return t("note.edited");
  return segment.warning && hasText(`note.${segment.warning}`) ? t(`note.${segment.warning}`) : undefined;
}

const translation = () => joinTarget(visibleSegments(), get("result").tail);

/** Make the view work. */
export function setUpTranslate() {
  source = createSource(() => get("result").segments, highlight);
  target = createTarget($("#target"), { onHover: highlight, onOpen: open });
  source.area.value = get("text");
  const notice = createNotice($("#notice"), {
    retry: () => refresh({ now: true }),
    shorten: () => setText([...get("text")].slice(0, get("page").max_chars).join("")),
    key: openKey,
    document: () => sendAsDocument(new File([get("text")], "text.txt", { type: "text/plain" })),
  });
  on("problem", notice.show);
  on(["result", "choices"], showResult);
  on("phase", (phase) => ["done", "empty"].includes(phase) && set("draft", pack(get("result"))));
  on(["text", "page"], showCount);
  on(["stats", "phase"], showStats);
  on(["page", "source", "target", "detected"], showLanguages);
  setUpSource();
  setUpButtons();
  setUpFiles();
  linkScrolling($("#source-scroller"), $("#target-scroller"), source, target, () => get("result").segments.length);
  setUpSpeech($("#speak-source"), () => ({ text: get("text"), language: sourceLanguage() }));
  setUpSpeech($("#speak-target"), () => ({ text: translation(), language: get("target") }));
  watchHistory(translation);
  resume();
  showResult();
  showCount();
}

function openKey() {
  const input = el("input", { type: "text", value: get("key"), autocomplete: "off", "aria-label": t("apikey.title") });
  const dialog = openDialog("middle", t("apikey.title"), t("close"), el("p.quiet", {}, t("apikey.about")), input,
    el("div.row", {}, el("span.space"), el("button.solid", { onclick: () => dialog.close() }, t("save"))));
  input.addEventListener("keydown", (event) => event.key === "Enter" && dialog.close());
  dialog.addEventListener("close", () => {
    set("key", input.value.trim());
    refresh({ now: true });
  });
  input.focus();
}

const sourceLanguage = () => (get("source") === "auto" ? get("detected") || guessLanguage(get("text")) : get("source"));

/** What the API panel shows. */
export const currentCall = () => ({ path: "/translate", body: currentRequest() });

/** Put a text in, as if it had been typed; keeps the browser's undo. */
export function setText(text, { now = true } = {}) {
  const { area } = source;
  area.focus();
  area.select();
  if (!document.execCommand("insertText", false, text)) area.value = text;
  set("text", text);
  refresh({ now });
}

function setUpSource() {
  const { area } = source;
  const grow = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
  const takeIn = (event) => {
    if (!CSS.supports("field-sizing", "content")) grow();
    source.highlight(-1);
    set("text", area.value);
    if (!event.isComposing) refresh({ now: event.inputType === "insertFromPaste" });
  };
  area.addEventListener("input", takeIn);
  area.addEventListener("compositionend", takeIn);
  $("#example").addEventListener("click", (event) => setText(event.target.dataset.text));
}

function setUpButtons() {
  $("#swap").addEventListener("click", swap);
  $("#clear").addEventListener("click", () => setText(""));
  $("#copy").addEventListener("click", copyResult);
  $("#save").addEventListener("click", () => download(`translation.${get("target")}.txt`, translation()));
  $("#open-glossary").addEventListener("click", openGlossary);
  $("#open-history").addEventListener("click", () => openHistory(restore));
  const paste = $("#paste");
  paste.hidden = !navigator.clipboard?.readText;
  paste.addEventListener("click", () => navigator.clipboard.readText().then(setText, () => flash(paste, t("paste.denied"))));
  $("#source-language").addEventListener("change", (event) => set("source", event.target.value));
  $("#target-language").addEventListener("change", (event) => set("target", event.target.value));
  const showTerms = () => {
    const count = get("glossary").filter(([term, word]) => term && word).length;
    $("#open-glossary").textContent = count ? `${t("glossary")} (${count})` : t("glossary");
  };
  on("glossary", showTerms);
  showTerms();
}

/** Copy the translation; also a shortcut. */
export const copyResult = () => copyText(translation()).then(() => flash($("#copy"), t("copied")));

function restore(entry) {
  setText(entry.text);
  set("source", entry.source);
  set("target", entry.target);
}

/** Exchange the languages, and the text with its translation; also a shortcut. */
export function swap() {
  const reason = whyNoSwap();
  if (reason) return set("problem", { code: "no_swap", reason });
  const [from, to] = [sourceLanguage(), get("target")];
  const text = translation();
  const segments = turnAround(visibleSegments());
  set("result", { segments, tail: "" });
  adopt(text);
  if (text) setText(text);
  if (get("source") !== "auto") set("source", baseOf(to));
  set("target", from);
}

/** Why the opposite direction is not to be had; "" when it is. */
function whyNoSwap() {
  const from = sourceLanguage() || get("page").directions.find(([, to]) => to === baseOf(get("target")))?.[0];
  if (!from || hasDirection(get("target"), from)) return "";
  return t("swap.no", { from: nameOf(get("target")), to: nameOf(from) });
}

function turnAround(segments) {
  let end = 0;
  let before = 0;
  const text = get("text");
  return segments.map(({ source: words, target: translated, start, end: stop, gap }) => {
    const begin = end + gap.length;
    end = begin + translated.length;
    const turned = { source: translated, target: words, start: begin, end, gap: text.slice(before, start), stale: true };
    before = stop;
    return turned;
  });
}

// -- what is shown ----------------------------------------------------------------------------------------------------

function showResult() {
  const { tail } = get("result");
  const root = $("#target");
  root.lang = get("target") === "zh" ? "zh-Hans" : get("target");
  target.show(visibleSegments(), tail);
  const isEmpty = !get("result").segments.length && !tail;
  for (const name of ["copy", "save", "speak-target"]) $(`#${name}`).disabled = isEmpty;
}

function showCount() {
  const count = countCharacters(get("text"));
  const limit = get("page").max_chars;
  const field = $("#count");
  field.textContent = `${number(count)} / ${number(limit)}`;
  field.classList.toggle("over", count > limit);
  $("#clear").disabled = !count;
  $("#speak-source").disabled = !count;
  showExample(!count);
}

function showExample(isWanted) {
  const button = $("#example");
  const code = hasDirection(language, language === "zh" ? "en" : "zh") ? language : "zh";
  button.hidden = !isWanted || !get("page").directions.length;
  button.dataset.text = EXAMPLES[code];
  button.lang = code;
  button.textContent = EXAMPLES[code];
}

function showStats() {
  $("#target").setAttribute("aria-busy", String(["typing", "streaming"].includes(get("phase"))));
  const stats = get("stats");
  const field = $("#result");
  if (get("phase") === "empty") field.textContent = "";
  if (get("phase") !== "done" || !stats) return;
  const parts = [t("stats.sentences", { n: stats.sentences }), `${number(Math.round(stats.ms))} ms`];
  if (stats.hits) parts.push(t("stats.cached", { n: stats.hits }));
  field.textContent = parts.join(" · ");
}

const nameOf = (code) => {
  if (code === TRADITIONAL) return t("traditional");
  const entry = get("page").languages.find(({ code: other }) => other === baseOf(code));
  return entry?.[language === "zh" ? "chinese_name" : "name"] ?? code;
};

function showLanguages() {
  const { directions } = get("page");
  if (!directions.length) return;
  const sources = [...new Set(directions.map(([from]) => from))];
  const chosen = get("source");
  const targets = [...new Set(directions.filter(([from]) => chosen === "auto" || from === chosen).map(([, to]) => to))];
  if (targets.includes("zh")) targets.splice(targets.indexOf("zh") + 1, 0, TRADITIONAL);
  const detected = chosen === "auto" && get("detected");
  const auto = detected ? t("detected", { language: nameOf(detected) }) : t("detect");
  offer($("#source-language"), [["auto", auto], ...sources.map((code) => [code, nameOf(code)])], chosen);
  if (!targets.includes(get("target"))) return set("target", targets[0]);
  offer($("#target-language"), targets.map((code) => [code, nameOf(code)]), get("target"));
  const reason = whyNoSwap();
  const button = $("#swap");
  button.setAttribute("aria-disabled", String(Boolean(reason)));
  button.title = reason || t("swap");
  button.setAttribute("aria-label", button.title);
}

function offer(select, choices, value) {
  const wanted = JSON.stringify(choices);
  if (select.dataset.choices !== wanted) {
    select.replaceChildren(...choices.map(([code, name]) => el("option", { value: code }, name)));
    select.dataset.choices = wanted;
  }
  select.value = value;
}

/** Tint a sentence on both sides; the one with the open card stays tinted while nothing is pointed at. */
function highlight(index) {
  const wanted = index < 0 ? openIndex : index;
  source.highlight(wanted);
  target.highlight(wanted);
}

function open(index) {
  const segment = visibleSegments()[index];
  if (segment.failed) return refresh({ now: true });
  card?.close();
  const anchor = target.span(index);
  anchor.setAttribute("aria-expanded", "true");
  openIndex = index;
  highlight(index);
  card = openCard({
    anchor, segment, host: $("#target-scroller"), request: currentRequest(),
    onChoose: (text) => choose(segment, get("result").segments[index]?.target, text),
    onClose: () => {
      anchor.removeAttribute("aria-expanded");
      card = null;
      openIndex = -1;
      anchor.focus({ preventScroll: true });
    },
  });
}

function choose(segment, machine, text) {
  const others = get("choices").filter(([key]) => key !== keyOf(segment));
  const added = text && text !== machine ? [[keyOf(segment), text]] : [];
  set("choices", [...others, ...added].slice(-MOST_CHOICES));
}

// -- files ------------------------------------------------------------------------------------------------------------

function setUpFiles() {
  const input = $("#file");
  const drop = $("#drop");
  $("#open-file").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) takeFile(input.files[0]);
    input.value = "";
  });
  const view = $("#view-translate");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  view.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.hidden = false;
  });
  view.addEventListener("dragleave", (event) => {
    if (!view.contains(event.relatedTarget)) drop.hidden = true;
  });
  view.addEventListener("drop", (event) => {
    drop.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    takeFile(event.dataTransfer.files[0]);
  });
  source.area.addEventListener("paste", (event) => {
    const [file] = event.clipboardData.files;
    if (!file) return;
    event.preventDefault();
    takeFile(file);
  });
}

const isPlain = (file) => (file.type ? file.type === "text/plain" : /\.(txt|md)$/i.test(file.name));

/** A short plain text comes into the pane; everything else is a document. */
async function takeFile(file) {
  if (!isPlain(file) || file.size > LARGEST_TEXT_FILE_BYTES) return sendAsDocument(file);
  const text = (await file.text()).replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  if (countCharacters(text) > get("page").max_chars) return sendAsDocument(file);
  announce(t("opened", { name: file.name }));
  return setText(text);
}

function sendAsDocument(file) {
  set("incoming", file);
  location.hash = "documents";
}
