/**
 * Keeps the translation of the text up to date: waits for a pause that fits the measured latency, drops the request
 * before, shows sentences as they come, and gets over failures by itself where it can. Knows no element of the page.
 */

import { streamTranslation, untilReady } from "./api.js";
import { perFrame } from "./dom.js";
import { carryOver, fromEvent, fromResponse, merge } from "./segments.js";
import { get, on, set } from "./state.js";

const SHORTEST_PAUSE_MS = 90;
const LONGEST_PAUSE_MS = 900;
const LONGEST_WAIT_S = 30;
const ENOUGH_TO_GUESS = 1000;
const PAIRS = /[\ud800-\udbff](?=[\udc00-\udfff])/g;

let controller = new AbortController();
let timer = 0;
let latencyMs = 300; // until a first sentence, smoothed
let attempts = 0;
let shown = { text: "", direction: "", glossary: "" };

/** Length as the service counts it: in characters, not UTF-16 units. */
export const countCharacters = (text) => text.length - (text.match(PAIRS)?.length ?? 0);

/** The language of a text, well enough to choose a direction; the service's own word comes with the answer. */
export function guessLanguage(whole) {
  const text = whole.slice(0, ENOUGH_TO_GUESS);
  const han = text.match(/\p{Script=Han}/gu)?.length ?? 0;
  const words = text.match(/\p{Script=Latin}+/gu)?.length ?? 0;
  if (!han && !words) return "";
  return han >= words ? "zh" : "en";
}

export const baseOf = (code) => code.split("-")[0];

/** Whether a model for this direction is loaded. */
export const hasDirection = (source, target) =>
  get("page").directions.some(([from, to]) => from === baseOf(source) && to === baseOf(target));

/** Choose a target that the text's language can be translated to; it stays where it can. */
function settleTarget(text) {
  const source = get("source") === "auto" ? guessLanguage(text) : baseOf(get("source"));
  const { directions } = get("page");
  if (!source || !directions.length || hasDirection(source, get("target"))) return;
  const possible = directions.find(([from]) => from === source);
  if (possible && (get("source") !== "auto" || baseOf(get("target")) === source)) set("target", possible[1]);
}

/** The body of POST /translate for what is on the screen. */
export function currentRequest() {
  const glossary = Object.fromEntries(get("glossary").filter(([term, word]) => term && word));
  const body = { text: get("text"), source: get("source"), target: get("target") };
  return Object.keys(glossary).length ? { ...body, glossary } : body;
}

/** The text or its setting changed: translate after a pause, or `now`. */
export function refresh({ now = false } = {}) {
  const text = get("text");
  settleTarget(text);
  clearTimeout(timer);
  const { max_chars: limit } = get("page");
  if (!text.trim()) return clear();
  const length = countCharacters(text);
  if (length > limit) {
    controller.abort();
    return set("problem", { code: "too_long", length, limit, over: length - limit });
  }
  if (get("problem")?.code === "too_long") set("problem", null);
  const pause = Math.min(Math.max(latencyMs * 0.6, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
  timer = setTimeout(run, now ? 0 : pause);
  if (get("phase") !== "streaming") set("phase", "typing");
}

/** Take the result on the screen for that of the request as it stands: after a reload. */
export function resume() {
  shown = describe(currentRequest());
}

/** The text was exchanged together with its translation. */
export function adopt(text) {
  shown = { ...shown, text };
}

const describe = ({ text, source, target, glossary = {} }) =>
  ({ text, direction: `${source} ${target}`, glossary: JSON.stringify(glossary) });

function clear() {
  controller.abort();
  shown = { ...shown, text: "" };
  set("problem", null);
  set("detected", "");
  set("stats", null);
  set("result", { segments: [], tail: "" });
  set("phase", "empty");
}

async function run() {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  const request = currentRequest();
  const carried = carry(request);
  const arrived = [];
  const started = performance.now();
  let isOver = false;
  const paint = perFrame(() => {
    if (!isOver && !signal.aborted) set("result", { ...get("result"), segments: merge(carried, arrived) });
  });
  set("phase", "streaming");
  set("request", request);
  set("result", { ...get("result"), segments: carried });
  try {
    for await (const { type, data } of streamTranslation(request, signal)) {
      if (signal.aborted) return;
      attempts = 0;
      if (get("problem")) set("problem", null);
      if (type === "done") {
        isOver = true;
        return finish(data, started);
      }
      if (!arrived.length) learn(performance.now() - started);
      arrived.push(fromEvent(data, arrived.at(-1), request.text, request.target));
      paint();
    }
  } catch (error) {
    isOver = true;
    if (!signal.aborted) fail(error, merge(carried, withRest(carried, arrived, request.text)), signal);
  }
}

/** The sentences on the screen, moved along with the text; all are old when the direction or the glossary changed. */
function carry(request) {
  const before = shown;
  shown = describe(request);
  const moved = carryOver(get("result").segments, before.text, request.text);
  const isSame = before.direction === shown.direction && before.glossary === shown.glossary;
  return isSame ? moved : moved.map((segment) => ({ ...segment, stale: true }));
}

function learn(ms) {
  latencyMs = 0.7 * latencyMs + 0.3 * ms;
  set("latency", latencyMs);
}

function finish(response, started) {
  set("detected", Array.isArray(response.source) ? response.source[0] : response.source);
  set("stats", {
    sentences: response.segments.length,
    ms: performance.now() - started,
    hits: response.cache.hits,
  });
  const isUntouched = !response.segments.length; // in the target language already, or blank
  set("result", isUntouched ? { segments: [], tail: response.translation } : fromResponse(response));
  set("phase", "done");
}

/** After a failure amid the stream: what is missing is shown in the source's words, marked. */
function withRest(carried, arrived, text) {
  const reached = arrived.at(-1)?.end ?? 0;
  const rest = text.slice(reached).trim();
  if (!arrived.length || !rest || carried.some((segment) => segment.end > reached)) return arrived;
  const missing = { source: rest, target: rest, source_start: reached, source_end: text.length };
  return [...arrived, { ...fromEvent(missing, arrived.at(-1), text, get("target")), failed: true }];
}

async function fail(error, segments, signal) {
  const isPartial = segments.some((segment) => segment.failed);
  set("result", { ...get("result"), segments: segments.map((s) => (s.stale ? { ...s, failed: true } : s)) });
  set("phase", "failed");
  const code = error.code ?? "internal";
  if (["overloaded", "rate_limited"].includes(code)) return waitOut(error, signal);
  if (["offline", "not_ready", "draining"].includes(code)) return waitForService(code, signal);
  set("problem", { code: isPartial && code === "internal" ? "partly" : code, message: error.message });
}

function waitOut(error, signal) {
  const seconds = Math.min(Math.max(error.retryAfter, 1) * 2 ** attempts, LONGEST_WAIT_S);
  attempts += 1;
  set("problem", { code: "overloaded", until: Date.now() + seconds * 1000 });
  timer = setTimeout(() => !signal.aborted && run(), seconds * 1000);
}

async function waitForService(code, signal) {
  set("problem", { code });
  const page = await untilReady(signal, (reason) => {
    const next = reason ? "not_ready" : "offline";
    if (get("problem")?.code !== next || get("problem").reason !== reason) set("problem", { code: next, reason });
  });
  if (!page || signal.aborted) return;
  set("page", page);
  run();
}

on(["source", "target"], () => get("text").trim() && refresh({ now: true }));
on("glossary", () => get("text").trim() && refresh());
