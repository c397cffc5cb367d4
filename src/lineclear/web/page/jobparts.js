// Parts of the Job screen: steps, timeline, pace, the facts line, the trace. Used by screens/job.js,
// which says when. Each makes elements of what the server told, and asks for nothing itself.

import { h, visible } from "./dom.js";
import { bare } from "./ansi.js";
import { line, number as figure } from "./charts.js";
import { duration, moment, prose } from "./prose.js";
import { link } from "./router.js";
import { count, number } from "./words.js";

const STEPS_SHOWN = 20;
const MINUTE = 60_000;

/** A section with its heading; hidden while it has nothing to say. */
export function section(name, title, ...children) {
  const body = h("div", { class: "section-body" }, ...children);
  const node = h("section", { class: `job-${name}`, hidden: children.length === 0 },
    title && h("h3", null, title), body);
  const fill = (...nodes) => {
    const there = nodes.flat().filter(Boolean);
    node.hidden = there.length === 0;
    body.replaceChildren(...there);
  };
  return { node, body, fill };
}

/** What is known of a job beside its state. */
export function facts(job) {
  const known = [
    ["Job", String(job.id)],
    ["Task", job.task],
    ["Lane", job.lane],
    ["Key", job.key],
    ["Priority", job.priority ? String(job.priority) : null],
    ["Part of", job.parent && h("a", { href: link(`jobs/${job.parent}`) }, `job ${job.parent}`)],
    ["Cleared from the lists", job.hidden ? "yes" : null],
  ];
  return h("dl", { class: "facts" }, known.filter(([, value]) => value).map(([name, value]) =>
    h("div", null, h("dt", null, name), h("dd", null, value.nodeType ? value : visible(value)))));
}

/** Finished steps with their sizes, the last ones first to be seen. */
export function steps(found, job) {
  if (!found.length) return [];
  const unit = job.unit ? ` ${job.unit}` : "";
  const item = (step) => h("li", null,
    h("span", { class: "step-name" }, visible(step.name)),
    h("span", { class: "step-size" }, [
      visible(`${number(step.weight)}${unit}`), duration(step.ended_ms - step.started_ms),
      job.try > 1 && `try ${step.attempt}`].filter(Boolean).join(" · ")));
  const hidden = found.slice(0, -STEPS_SHOWN);
  const list = h("ol", { class: "steps" }, ...found.slice(-STEPS_SHOWN).map(item));
  const more = hidden.length > 0 && h("button", { type: "button", class: "btn small", on: {
    click: () => { list.prepend(...hidden.map(item)); more.remove(); },
  } }, h("span", null, `Show the ${count(hidden.length, "step")} before`));
  return [h("p", { class: "muted" }, `${count(found.length, "step")} done, all of them kept.`), more, list];
}

/** What happened, oldest first: when, what, by whom. Steps in a row are one line. */
export function timeline(events) {
  const rows = [];
  let since = null;
  for (const event of events) {
    const before = rows.at(-1);
    if (event.kind === "step" && before?.kind === "step") {
      Object.assign(before, { steps: before.steps + 1, last: event.text });
      continue;
    }
    const waited = event.kind === "claimed" && since !== null ? event.at_ms - since : 0;
    rows.push({ ...event, steps: 1, waited });
    if (["added", "retried", "back in line", "to retry", "restored"].includes(event.kind)) since = event.at_ms;
  }
  return h("ol", { class: "timeline" }, ...rows.map((row) => h("li", null,
    moment(row.at_ms, { seconds: true }),
    h("span", null, row.steps > 1 ? [`finished ${row.steps} steps, the last: `, prose(row.last)] : prose(row.text),
      row.waited >= MINUTE && ` after waiting ${duration(row.waited)}`))));
}

/** How far it was at each measured minute. */
export function pace({ points, total, unit }, { small = false } = {}) {
  const known = points.filter(([, done]) => Number.isFinite(done));
  const noun = visible(unit || "done");
  let sentence = "";
  if (known.length > 1) {
    const [[from, low], [to, high]] = [known[0], known.at(-1)];
    const recent = known.find(([at]) => at >= to - 10 * MINUTE);
    const each = (a, b, c, d) => number(Math.round((10 * MINUTE * (d - b)) / Math.max(1, c - a)) / 10);
    sentence = `${figure(high - low)} ${noun} in ${duration(to - from)}, `
      + `about ${each(from, low, to, high)} a minute`;
    if (to - from > 15 * MINUTE) sentence += `, ${each(recent[0], recent[1], to, high)} in the last 10 min`;
    sentence += ".";
  }
  return line(known, {
    title: "Pace", unit: noun, sentence, small,
    limit: total ? { value: total } : null,
    empty: "Too early for a chart: two measured minutes are needed.",
  });
}

/** The last traceback among log records as text, or what there is instead. */
export function trace(records) {
  const texts = records.map((record) => bare(record.text));
  const start = texts.findLastIndex((each) => each.startsWith("Traceback (most recent call last)"));
  return start < 0 ? "" : texts.slice(start).join("\n");
}
