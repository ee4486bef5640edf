/** Embeddings of lines: how alike they are, where they lie, which are nearest to a query. */

import { embed } from "./api.js";
import { $, copyText, download, el, flash, svg } from "./dom.js";
import { number, t } from "./i18n.js";
import { get, keep, on, set } from "./state.js";
import { normalize, project, similarities, toNpy } from "./vectors.js";

const MOST_LINES = 200;
const PAUSE_MS = 300;
const HEAT_PIXELS = 960;
const MOST_LABELS = 60;
const MOST_NUMBERS = 30; // rows whose numbers fit on the diagonal
const MARGIN = 28;

keep("lines", "");
keep("query", "");

/** Build the view. */
export function setUp(root) {
  const cache = new Map(); // a line's vector, so that only new lines are sent
  const area = el("textarea.box", { "aria-label": t("embeddings.lines"), placeholder: t("embeddings.placeholder"), rows: 8, spellcheck: "false" });
  const query = el("input", { type: "search", "aria-label": t("embeddings.query"), placeholder: t("embeddings.query") });
  const example = el("button.strong", { onclick: () => ((area.value = t("embeddings.example")), changed(0)) }, t("embeddings.try"));
  const copy = el("button", { onclick: () => copyText(JSON.stringify(vectors())).then(() => flash(copy, t("copied"))) }, t("embeddings.json"));
  const save = el("button", { onclick: () => download("embeddings.npy", toNpy(vectors()), "application/octet-stream") }, t("embeddings.npy"));
  const message = el("p.quiet", { role: "status" });
  const heat = el("canvas", { role: "img", tabindex: "0", width: HEAT_PIXELS, height: HEAT_PIXELS });
  const map = svg("svg", { role: "img", class: "map", "aria-label": t("embeddings.map") });
  const readout = el("p.quiet", { "aria-live": "polite" });
  const near = el("ol.near");
  const results = el("div.stack", { hidden: true },
    el("figure", {}, el("figcaption", {}, t("embeddings.heat")), heat),
    readout,
    el("figure", {}, el("figcaption", {}, t("embeddings.map")), map));
  root.append(el("h1.unseen", {}, t("embeddings")), el("p.quiet", {}, t("embeddings.about", { n: MOST_LINES })),
    el("div.split", {},
      el("div.stack", {}, area, el("div.row", {}, example, el("span.space"), copy, save), message, query, near),
      results));

  let lines = [];
  let matrix = [];
  let at = [0, 0];
  let timer = 0;
  let controller = new AbortController();
  const vectors = () => lines.map((line) => cache.get(line));

  function changed(pause) {
    set("lines", area.value);
    set("query", query.value);
    set("call", {});
    clearTimeout(timer);
    timer = setTimeout(compute, pause);
  }

  async function compute() {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    const wanted = linesOf(area.value);
    const missing = [...new Set([...wanted, query.value.trim()])].filter((line) => line && !cache.has(line));
    try {
      if (missing.length) {
        const found = await embed(missing, signal);
        missing.forEach((line, index) => cache.set(line, found[index]));
      }
    } catch (error) {
      if (!signal.aborted) message.textContent = error.message || t("problem.offline");
      return;
    }
    lines = wanted;
    show();
  }

  function show() {
    const units = vectors().map(normalize);
    matrix = similarities(units);
    results.hidden = lines.length < 2;
    copy.disabled = save.disabled = !lines.length;
    message.textContent = lines.length ? t("embeddings.count", { n: lines.length, dimension: units[0].length }) : "";
    if (lines.length > 1) {
      drawHeat();
      drawMap(project(units));
    }
    const asked = cache.get(query.value.trim());
    near.replaceChildren(...(asked && units.length ? rank(normalize(asked), units) : []));
  }

  const rank = (unit, units) => units
    .map((other, index) => [other.reduce((sum, value, place) => sum + value * unit[place], 0), lines[index]])
    .sort((a, b) => b[0] - a[0]).slice(0, 10)
    .map(([score, line]) => el("li", {}, el("span.score", {}, number(score, 3)), el("span", {}, line)));

  function drawHeat() {
    const size = lines.length;
    const cell = HEAT_PIXELS / size;
    const pen = heat.getContext("2d");
    const least = Math.min(...matrix.flatMap((row) => Math.min(...row)));
    const [from, to] = [colour("--paper"), colour("--accent")];
    matrix.forEach((row, i) => row.forEach((value, j) => {
      const share = least < 1 ? (value - least) / (1 - least) : 1;
      const mixed = from.map((channel, index) => channel + share * (to[index] - channel));
      pen.fillStyle = `rgb(${mixed.map(Math.round)})`;
      pen.fillRect(Math.floor(j * cell), Math.floor(i * cell), Math.ceil(cell), Math.ceil(cell));
    }));
    if (size <= MOST_NUMBERS) writeNumbers(pen, size, cell);
    const [score, i, j] = closestPair(matrix);
    heat.setAttribute("aria-label", t("embeddings.closest", { a: i + 1, b: j + 1, score: number(score, 3) }));
    pick(i, j);
  }

  function writeNumbers(pen, size, cell) {
    pen.fillStyle = `rgb(${colour("--paper")})`;
    pen.font = `600 ${Math.min(cell / 3, 28)}px system-ui`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let i = 0; i < size; i += 1) pen.fillText(i + 1, (i + 0.5) * cell, (i + 0.5) * cell);
  }

  function pick(i, j) {
    const last = lines.length - 1;
    at = [Math.min(Math.max(i, 0), last), Math.min(Math.max(j, 0), last)];
    const [a, b] = at;
    readout.textContent = `${a + 1} × ${b + 1}: ${number(matrix[a][b], 3)} · ${shorten(lines[a])} / ${shorten(lines[b])}`;
    for (const point of map.querySelectorAll(".point")) point.classList.toggle("on", at.includes(Number(point.dataset.index)));
  }

  function drawMap(points) {
    const width = map.clientWidth;
    const height = width * 0.65;
    map.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const place = scaleInto(points, width, height);
    map.replaceChildren(...points.flatMap((point, index) => {
      const [x, y] = place(point);
      const dot = svg("circle", { class: "point", cx: x, cy: y, r: 4, "data-index": index }, svg("title", {}, lines[index]));
      dot.addEventListener("pointerenter", () => pick(index, at[0]));
      const isRight = x > width * 0.6;
      const label = svg("text", { class: "label", x: x + (isRight ? -8 : 8), y: y + 4, "text-anchor": isRight ? "end" : "start" },
        `${index + 1} ${shorten(lines[index], 12)}`);
      return points.length <= MOST_LABELS ? [dot, label] : [dot];
    }));
    pick(...at);
  }

  heat.addEventListener("pointermove", (event) => {
    const cell = heat.clientWidth / lines.length;
    pick(Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell));
  });
  heat.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    pick(at[0] + down, at[1] + right);
  });
  area.addEventListener("input", () => changed(PAUSE_MS));
  query.addEventListener("input", () => changed(PAUSE_MS));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => lines.length > 1 && drawHeat());
  on("theme", () => lines.length > 1 && drawHeat());
  area.value = get("lines");
  query.value = get("query");
  copy.disabled = save.disabled = true;

  return {
    enter: () => (area.value.trim() ? compute() : area.focus()),
    currentCall: () => ({ path: "/predict", body: { task_type: "embedding", input_text: linesOf(area.value) } }),
  };
}

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MOST_LINES);
const shorten = (text, most = 24) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function closestPair(matrix) {
  let best = [-2, 0, 0];
  matrix.forEach((row, i) => row.forEach((score, j) => {
    if (i < j && score > best[0]) best = [score, i, j];
  }));
  return best;
}

function colour(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

/** Return a function from a point to its place in the map, the same scale on both axes. */
function scaleInto(points, width, height) {
  const spans = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const room = [width - 2 * MARGIN, height - 2 * MARGIN];
  const scale = Math.min(...spans.map(([low, high], axis) => room[axis] / Math.max(high - low, 1e-9)));
  return (point) => point.map((value, axis) => {
    const [low, high] = spans[axis];
    return MARGIN + room[axis] / 2 + scale * (value - (low + high) / 2);
  });
}
