/** Two small charts: lines over time and bars. */

import { el, svg } from "./dom.js";

const WIDTH = 300;
const HEIGHT = 90;

/** A figure with a title, its latest value and a drawing. */
export function figure(title) {
  const value = el("b");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  return { node: el("figure", {}, el("figcaption", {}, el("span", {}, title), value), drawing), drawing, value, title };
}

/** Draw series of numbers, null where there is none; `room` is the number of points across. */
export function drawLines(chart, series, room, text) {
  const highest = Math.max(1e-9, ...series.flat().filter((value) => value !== null));
  const x = (index, length) => WIDTH - ((length - 1 - index) / (room - 1)) * WIDTH;
  const y = (value) => HEIGHT - 4 - (value / highest) * (HEIGHT - 12);
  const paths = series.map((values, which) => {
    let isDrawing = false;
    const d = values.map((value, index) => {
      const step = value === null ? "" : `${isDrawing ? "L" : "M"}${x(index, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
      isDrawing = value !== null;
      return step;
    }).join("");
    return svg("path", { class: which ? "plot second" : "plot", d });
  });
  finish(chart, paths, text);
}

/** Draw one bar for each `[label, count]`. */
export function drawBars(chart, bars, text) {
  const highest = Math.max(1, ...bars.map(([, count]) => count));
  const width = WIDTH / Math.max(bars.length, 1);
  const nodes = bars.flatMap(([label, count], index) => {
    const height = (count / highest) * (HEIGHT - 26);
    return [
      svg("rect", { class: "bar-fill", x: index * width + 2, y: HEIGHT - 16 - height, width: width - 4, height }),
      svg("text", { x: index * width + width / 2, y: HEIGHT - 4, "text-anchor": "middle" }, label),
    ];
  });
  finish(chart, nodes, text);
}

function finish(chart, nodes, text) {
  const axis = svg("path", { class: "axis", d: `M0 ${HEIGHT - 0.5}H${WIDTH}` });
  chart.drawing.replaceChildren(axis, ...nodes);
  chart.value.textContent = text;
  chart.drawing.setAttribute("aria-label", `${chart.title}: ${text}`);
}
