/** For whoever runs the service: what it does just now, drawn from /status.json. */

import { fetchStatus } from "./api.js";
import { drawBars, drawLines, figure } from "./charts.js";
import { el } from "./dom.js";
import { number, t } from "./i18n.js";
import { buckets, growth, percentile, total } from "./samples.js";

const EVERY_MS = 2000;
const MOST_POINTS = 90; // three minutes
const LATENCY_OVER = 8; // snapshots that a percentile looks back
const ROUTES = ["/translate", "/predict"];

const queueOf = (status, kind) => Object.values(status.queue).reduce((sum, queue) => sum + queue[kind], 0);
const perSecond = (value) => t("status.per_second", { value: number(value, value < 10 ? 1 : 0) });
const ms = (seconds) => (seconds === null ? "–" : `${number(Math.round(seconds * 1000))} ms`);

/** Build the view. */
export function setUp(root) {
  const facts = el("dl.facts");
  const message = el("p.quiet", { role: "status" });
  const charts = Object.fromEntries(["queue", "throughput", "latency", "cache", "batches", "memory"]
    .map((name) => [name, figure(t(`status.${name}`))]));
  root.append(el("h1.unseen", {}, t("status")), message, facts,
    el("div.figures", {}, ...Object.values(charts).map((chart) => chart.node)),
    el("p.quiet", {}, t("status.about"), " ", el("a", { href: "/metrics" }, "/metrics"), " · ",
      el("a", { href: "/health" }, "/health"), " · ", el("a", { href: "/docs" }, "/docs")));

  let moments = []; // {time, status}
  let timer = 0;

  async function look() {
    clearTimeout(timer);
    try {
      moments = [...moments, { time: performance.now(), status: await fetchStatus() }].slice(-MOST_POINTS - 1);
      show();
    } catch (error) {
      message.textContent = error.message || t("status.gone");
    }
    if (!root.hidden) timer = setTimeout(look, EVERY_MS);
  }

  function show() {
    const { status } = moments.at(-1);
    message.textContent = status.ready ? t("status.ready") : t("problem.not_ready", { reason: status.reason });
    facts.replaceChildren(...describe(status).flatMap(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    drawQueue(status);
    drawThroughput();
    drawLatency();
    drawCache(status);
    drawBatches(status);
    drawMemory(status);
  }

  /** One value for each step between two moments. */
  const steps = (read) => moments.slice(1).map((after, index) =>
    read(moments[index].status, after.status, (after.time - moments[index].time) / 1000));

  function drawQueue(status) {
    const series = ["waiting", "running"].map((kind) => moments.map((moment) => queueOf(moment.status, kind)));
    drawLines(charts.queue, series, MOST_POINTS,
      t("status.queue.now", { waiting: queueOf(status, "waiting"), running: queueOf(status, "running") }));
  }

  function drawThroughput() {
    const series = steps((before, after, seconds) => growth(before, after, "tandem_batch_items_sum") / seconds);
    drawLines(charts.throughput, [series], MOST_POINTS, perSecond(series.at(-1) ?? 0));
  }

  function drawLatency() {
    const at = (share) => moments.slice(1).map((after, index) => {
      const before = moments[Math.max(0, index + 1 - LATENCY_OVER)].status;
      const counts = ROUTES.map((route) => buckets(before, after.status, "tandem_request_seconds", { route }));
      return percentile(counts[0].map(([bound, count], place) => [bound, count + counts[1][place][1]]), share);
    });
    const [median, high] = [at(0.5), at(0.95)];
    const text = `p50 ${ms(median.at(-1) ?? null)} · p95 ${ms(high.at(-1) ?? null)}`;
    drawLines(charts.latency, [high, median], MOST_POINTS, text);
  }

  function drawCache(status) {
    const rate = (hits, misses) => (hits + misses ? hits / (hits + misses) : null);
    const series = steps((before, after) => rate(...["hit", "miss"].map((event) =>
      growth(before, after, "tandem_cache_total", { event }))));
    const overall = rate(...["hit", "miss"].map((event) => total(status, "tandem_cache_total", { event })));
    drawLines(charts.cache, [series], MOST_POINTS, overall === null ? "–" : `${number(100 * overall, 0)} %`);
  }

  function drawBatches(status) {
    const nothing = { samples: {} };
    const counts = buckets(nothing, status, "tandem_batch_items").filter(([bound, count]) => bound <= 64 || count);
    const items = total(status, "tandem_batch_items_sum");
    const batches = total(status, "tandem_batch_items_count");
    drawBars(charts.batches, counts.map(([bound, count]) => [bound === Infinity ? "∞" : `≤${bound}`, count]),
      batches ? t("status.mean", { value: number(items / batches, 1) }) : "–");
  }

  function drawMemory(status) {
    charts.memory.node.hidden = status.gpu_mem_used_gb === null;
    if (status.gpu_mem_used_gb === null) return;
    drawLines(charts.memory, [moments.map((moment) => moment.status.gpu_mem_used_gb)], MOST_POINTS,
      `${number(status.gpu_mem_used_gb, 2)} GB`);
  }

  return { enter: look, leave: () => clearTimeout(timer) };
}

function describe(status) {
  const { translation = [], embedding } = status.models;
  const rows = [
    [t("status.device"), status.device === "cuda" ? "GPU (CUDA)" : status.device === "cpu" ? "CPU" : "–"],
    [t("status.engine"), status.engine ?? "–"],
    ...translation.map((model) => [`${model.source} → ${model.target}`, `${model.name} · ${model.precision}`]),
  ];
  if (embedding) rows.push([t("embeddings"), `${embedding.name} · ${embedding.dimension} · ${embedding.precision}`]);
  rows.push([t("status.requests"), number(total(status, "tandem_requests_total", {}))]);
  return rows;
}
