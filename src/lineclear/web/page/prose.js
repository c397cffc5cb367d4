// Sentences of the server with their marked moments and names, as the reader's own zone and name
// say them. Used wherever a sentence of the server is shown. It must never make markup of them.

import { h, visible } from "./dom.js";

/** Who reads, and what time it is on the server; live.js keeps both. */
export const reader = { name: "", now: () => Date.now() };

const MARK = /\u0002([^\u0003]*)\u0003/g;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const two = (value) => String(value).padStart(2, "0");
const DAY = 86_400_000;

/** `23:40`, `yesterday 23:10`, `28 Nov 09:00`: local time, the day unless it is today. */
export function clock(ms, { seconds = false } = {}) {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return "an unknown time";
  const now = new Date(reader.now());
  const midnight = (day) => new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
  const days = Math.round((midnight(at) - midnight(now)) / DAY);
  let day = { 0: "", 1: "tomorrow ", "-1": "yesterday " }[days];
  if (day === undefined) {
    day =
      at.getFullYear() === now.getFullYear()
        ? `${at.getDate()} ${MONTHS[at.getMonth()]} `
        : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
  }
  return `${day}${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

/** The moment as a <time>, with the full time and zone behind it. */
export function moment(ms, options) {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return h("span", null, "an unknown time");
  const full = { dateStyle: "full", timeStyle: "long" };
  const title = new Intl.DateTimeFormat("en-GB", full).format(at);
  return h("time", { datetime: at.toISOString(), title }, clock(ms, options));
}

/** In at most two units: `1 h 12 min`, `38 min`, `12 s`; `exact`: `1 min 30 s`. */
export function duration(ms, { exact = false } = {}) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit));
  const parts = days
    ? [[days, "d"], [hours % 24, "h"]]
    : hours
      ? [[hours, "h"], [minutes % 60, "min"]]
      : minutes && !exact
        ? [[minutes, "min"]]
        : [[minutes, "min"], [seconds % 60, "s"]];
  const told = parts.filter(([amount]) => amount).map(([amount, unit]) => `${amount} ${unit}`);
  return told.join(" ") || "0 s";
}

function name(mark) {
  return mark.slice(1) === reader.name ? "you" : mark.slice(1);
}

/** A sentence as nodes: text, <time> elements, `you`. */
export function prose(sentence) {
  const out = document.createDocumentFragment();
  String(sentence ?? "").split(MARK).forEach((part, at) => {
    if (at % 2 === 0) part && out.append(visible(part));
    else out.append(part.startsWith("@") ? name(part) : moment(Number(part)));
  });
  return out;
}

/** The same as one string. */
export function plain(sentence) {
  const told = (_, mark) => (mark.startsWith("@") ? name(mark) : clock(Number(mark)));
  return String(sentence ?? "").replace(MARK, told);
}

/** Makes the content of `node` the sentence; touches nothing where it says that already. */
export function tell(node, sentence) {
  const said = plain(sentence);
  if (node.told === sentence && node.said === said) return node;
  node.told = sentence;
  node.said = said;
  node.replaceChildren(prose(sentence));
  return node;
}
