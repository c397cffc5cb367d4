// Charts as inline SVG, each a figure with a sentence and, behind a disclosure, a table. Used by the
// Job and Metrics screens. It draws at most 300 points, animates nothing, and never shows a chart
// without saying in words what it shows.

import {h, svg} from "./dom.js";
import {moment} from "./prose.js";

const MOST = 300;

/** Evenly chosen ones of a long list; the first and the last stay. */
export function thinned(points, most = MOST) {
  if (points.length <= most) return points;
  const step = (points.length - 1) / (most - 1);
  return Array.from({length: most}, (_, at) => points[Math.round(at * step)]);
}

/** The next 1, 2 or 5 times a power of ten: where an axis ends. */
export function roundedUp(value) {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

export const number = (value) =>
  value.toLocaleString("en", {maximumFractionDigits: Math.abs(value) < 10 ? 2 : 0});

/** One value over time. points: [[ms, value], …]; limit: a line drawn across, {value, word}. */
export function line(points, options) {
  const shown = thinned(points.filter(([at, value]) => Number.isFinite(at + value)));
  if (shown.length < 2) return empty(options);
  const [from, to] = [shown[0][0], shown.at(-1)[0]];
  const highest = Math.max(...shown.map(([, value]) => value), options.limit?.value ?? 0);
  const top = roundedUp(highest);
  const x = (at) => (100 * (at - from)) / Math.max(1, to - from);
  const y = (value) => 100 - (100 * Math.max(0, value)) / top;
  const path = shown.map(([at, value], i) => `${i ? "L" : "M"}${round(x(at))} ${round(y(value))}`);
  const drawn = [svg("path", {d: path.join(""), class: "chart-line"})];
  if (options.limit) {
    const at = round(y(options.limit.value));
    drawn.unshift(svg("path", {d: `M0 ${at}H100`, class: "chart-limit"}));
  }
  const middle = (from + to) / 2;
  return figure(options, {
    drawn, top,
    feet: [moment(from), moment(middle), moment(to)],
    head: ["Time", options.unit || "Value"],
    rows: () => shown.map(([at, value]) => [moment(at), number(value)]),
  });
}

/** Amounts side by side. items: [{at_ms | label, values: [n, …]}], series: [{word, tone}], stacked. */
export function bars(items, options) {
  const shown = thinned(items);
  if (!shown.length) return empty(options);
  const series = options.series ?? [{word: options.unit || "Value", tone: "accent"}];
  const sum = (item) => item.values.reduce((total, value) => total + Math.max(0, value ?? 0), 0);
  const top = roundedUp(Math.max(1, ...shown.map(sum)));
  const wide = 100 / shown.length;
  const drawn = [];
  shown.forEach((item, at) => {
    let foot = 100;
    item.values.forEach((value, which) => {
      const tall = (100 * Math.max(0, value ?? 0)) / top;
      foot -= tall;
      if (!tall) return;
      drawn.push(svg("rect", {
        x: round(at * wide + wide * 0.1), y: round(foot), width: round(wide * 0.8),
        height: round(tall), class: `chart-bar tone-${series[which].tone}`,
      }));
    });
  });
  const name = (item) => (item.at_ms == null ? item.label : moment(item.at_ms));
  const ends = shown.length > 2 ? [shown[0], shown[shown.length >> 1], shown.at(-1)] : shown;
  return figure(options, {
    drawn, top,
    feet: ends.map(name),
    centred: shown.length <= 2,
    head: [options.of || "Time", ...series.map((each) => each.word)],
    rows: () => shown.map((item) => [name(item), ...item.values.map((v) => (v == null ? "–" : number(v)))]),
    legend: series.length > 1 ? series : null,
  });
}

function figure({title, sentence, unit, small}, {drawn, top, feet, head, rows, legend, centred}) {
  const half = round(50);
  const grid = ["M0 0H100", `M0 ${half}H100`, "M0 100H100"].join("");
  const picture = svg("svg", {
    viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img",
    "aria-label": [title, sentence].filter(Boolean).join(": "), class: "chart-svg",
  }, svg("path", {d: grid, class: "chart-grid"}), ...drawn);
  if (small) return h("figure", {class: "chart spark"}, picture, caption("", sentence));
  const axis = h("div", {class: "chart-y", "aria-hidden": "true"},
    ...[top, top / 2, 0].map((value) => h("span", null, number(value))));
  const foot = h("div", {class: `chart-x${centred ? " chart-x-few" : ""}`, "aria-hidden": "true"},
    ...feet.map((each) => h("span", null, each)));
  return h("figure", {class: "chart"}, caption(title, sentence),
    legend && h("ul", {class: "chart-legend"}, ...legend.map(({word, tone}) =>
      h("li", null, h("span", {class: `chart-key tone-${tone}`, "aria-hidden": "true"}), word))),
    unit && h("p", {class: "chart-unit", "aria-hidden": "true"}, unit),
    h("div", {class: "chart-plot"}, axis, picture, foot), table(title, head, rows));
}

function caption(title, sentence) {
  return h("figcaption", null, title && h("strong", {class: "chart-title"}, title),
    sentence && h("span", {class: "chart-sentence"}, sentence));
}

// Filled when it is opened: three hundred rows that nobody reads are not worth making.
function table(title, head, rows) {
  const details = h("details", {class: "chart-table"}, h("summary", null, "Show as a table"));
  const filled = () => {
    if (!details.open || details.querySelector("table")) return;
    details.append(h("div", {class: "chart-rows", tabindex: "0", role: "group", "aria-label": title},
      h("table", null,
        h("thead", null, h("tr", null, ...head.map((word) => h("th", {scope: "col"}, word)))),
        h("tbody", null, ...rows().map(([first, ...more]) => h("tr", null,
          h("th", {scope: "row"}, first), ...more.map((value) => h("td", null, value))))))));
  };
  details.addEventListener("toggle", filled);
  return details;
}

function empty({title, empty: text}) {
  return h("figure", {class: "chart chart-empty"}, caption(title, ""),
    h("p", {class: "muted"}, text || "Needs two ended jobs of this kind."));
}

const round = (value) => Math.round(value * 100) / 100;
