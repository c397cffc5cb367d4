// The Metrics screen: how much was done, how long jobs wait and run, whether the ranges shown are
// right. Opened by the router. It must never show a chart without a sentence, nor a number of too few.

import { get, root as mount } from "../api.js";
import { bars } from "../charts.js";
import { h } from "../dom.js";
import { pace } from "../jobparts.js";
import { settled } from "../live.js";
import { metrics as words } from "../phrases.js";
import { duration } from "../prose.js";
import { link } from "../router.js";
import { lost } from "./lost.js";

const SETTLE_MS = 2_000;
const UNITS = [[86_400_000, "days"], [3_600_000, "hours"], [60_000, "minutes"], [1_000, "seconds"]];
const PACES = 4;

export async function open(root, { query, live }) {
  const since = words.spans.map(([name]) => name).find((name) => name === query.get("since")) ?? "7d";
  const place = h("div", { class: "metrics" });
  try {
    place.append(...(await parts(since, live)));
  } catch (problem) {
    return lost(root, problem);
  }
  root.append(place);
  const read = () => place.contains(document.activeElement) || place.querySelector("details[open]");
  const again = settled(async () => {
    const fresh = read() ? null : await parts(since, live).catch(() => null);
    if (fresh && !read()) place.replaceChildren(...fresh);
  }, SETTLE_MS);
  const rows = ({ ids }) => {
    if ([...ids].some((id) => live.row(id)?.ended_ms)) again();
  };
  live.addEventListener("rows", rows);
  const close = () => {
    again.stop();
    live.removeEventListener("rows", rows);
  };
  return { title: words.title, close };
}

async function parts(since, live) {
  // Opened by its address, the screen may be there before the stream's first word.
  const state = live.state ?? (await get("state"));
  const [told, paces] = await Promise.all([get("metrics", { since }), running(state)]);
  const ended = told.tasks.length > 0;
  return [
    h("h2", { class: "unseen" }, words.title),
    h("nav", { class: "spans", "aria-label": words.since }, words.since, ...words.spans.map(([name, word]) =>
      h("a", { class: "btn", href: link(`metrics?since=${name}`), "aria-current": name === since ? "page" : null },
        h("span", null, word)))),
    oldest(told, state),
    h("div", { class: "charts" },
      ended ? throughput(told) : h("p", { class: "empty" }, since === "30d" ? words.none : words.noneSince),
      ...spreads(told.tasks, "ran", words.run, words.runSaid),
      ...spreads(told.tasks, "waited", words.wait, words.waitSaid),
      hits(told)),
    told.capped && h("p", { class: "muted" }, words.capped),
    ended && table(told.tasks),
    h("h2", null, words.pace),
    paces.length ? h("div", { class: "charts" }, ...paces) : h("p", { class: "muted" }, words.noPace),
    h("p", { class: "muted machine" }, words.machine, h("a", { href: `${mount}-/metrics` }, "/-/metrics")),
  ].filter(Boolean);
}

// How far what runs now came, minute by minute; of the few that say so.
async function running(state) {
  const rows = state.running.filter((row) => row.done !== null).slice(0, PACES);
  const told = await Promise.all(rows.map((row) => get(`jobs/${row.id}/pace`).catch(() => null)));
  return rows.map((row, at) => told[at]?.points.length &&
    h("section", null, h("h3", null, h("a", { href: link(`jobs/${row.id}`) }, row.title)), pace(told[at], {}))).filter(Boolean);
}

function oldest({ oldest: found, now_ms }, state) {
  if (!found) return h("p", null, words.oldestNone);
  const [id, since_ms] = found;
  const name = state.waiting.find((row) => row.id === id)?.title ?? `job ${id}`;
  return h("p", null, words.oldest, h("a", { href: link(`jobs/${id}`) }, name), words.oldestFor(duration(now_ms - since_ms)));
}

function throughput({ throughput: stretches, every_ms }) {
  const sum = (at) => stretches.reduce((total, stretch) => total + stretch[at], 0);
  return bars(stretches.map(([at_ms, done, failed]) => ({ at_ms, values: [done, failed] })), {
    title: words.throughput,
    sentence: words.throughputSaid(sum(1), sum(2), duration(every_ms)),
    series: [{ word: words.done, tone: "ok" }, { word: words.failed, tone: "bad" }],
  });
}

// Medians of each task side by side; one sentence for the busiest.
function spreads(tasks, which, title, said) {
  const known = tasks.filter((task) => task[which]);
  if (!known.length) return tasks.length ? [bars([], { title, empty: words.needs })] : [];
  const most = Math.max(...known.map((task) => task[which].median_ms));
  const [unit_ms, unit] = UNITS.find(([size]) => most >= 2 * size) ?? UNITS.at(-1);
  return [bars(known.map((task) => ({ label: task.task, values: [task[which].median_ms / unit_ms] })), {
    title,
    unit,
    of: words.columns[0],
    sentence: said(known[0].task, inWords(known[0][which])),
  })];
}

const inWords = ({ jobs, median_ms, low_ms, high_ms }) =>
  ({ jobs, median: duration(median_ms), low: duration(low_ms), high: duration(high_ms) });

function hits({ ranges, inside }) {
  const said = ranges ? words.hitSaid(inside, ranges) : words.hitNone;
  return h("section", { class: "hits" }, h("h3", { class: "chart-title" }, words.hit), h("p", null, said),
    ranges > 0 && h("meter", { min: 0, max: ranges, low: 0.8 * ranges, optimum: ranges, value: inside, "aria-label": words.hit }));
}

function table(tasks) {
  const spread = (found) => (found ? words.between(inWords(found)) : h("span", { class: "muted" }, words.needs));
  return h("section", null, h("h2", { id: "by-task" }, words.tasks),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-labelledby": "by-task" },
      h("table", { class: "by-task", "aria-labelledby": "by-task" },
        h("thead", null, h("tr", null, ...words.columns.map((word) => h("th", { scope: "col" }, word)))),
        h("tbody", null, ...tasks.map((task) => h("tr", null, h("th", { scope: "row" }, task.task),
          h("td", null, String(task.done)), h("td", null, String(task.failed)),
          h("td", null, spread(task.ran)), h("td", null, spread(task.waited))))))));
}
