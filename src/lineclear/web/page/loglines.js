// The lines of a log as elements: at most 5,000 of them, records of one long line joined. Used by
// logview.js, which decides what to load and where to scroll. It knows no network and no scroll.

import { h } from "./dom.js";
import { bare, pieces } from "./ansi.js";

export const KEPT = 5000;
export const CUT = 4000;
const WORDS = { o: "out", e: "err", l: "note" };

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export class Lines {
  /** node: where the lines stand, the oldest first. */
  constructor(node) {
    this.node = node;
    this.lines = [];
    this.batches = []; // the pieces they came in: {count, start}
  }

  get full() {
    return this.lines.length >= KEPT;
  }

  clear() {
    this.lines = [];
    this.batches = [];
    this.node.replaceChildren();
  }

  /** Newer records, which begin at this cursor. Answers how many lines they began. */
  append(records, start) {
    const fresh = [];
    const grown = new Set();
    for (const record of records) {
      const open = record.continued && this.#last(record.stream, fresh);
      if (open) {
        open.text += record.text;
        if (open.node) grown.add(open);
      } else fresh.push(started(record));
    }
    this.node.append(...fresh.map(made));
    this.lines.push(...fresh);
    for (const line of grown) fill(line);
    if (fresh.length) this.batches.push({ count: fresh.length, start });
    return fresh.length;
  }

  /** Older records, before all that are there. */
  prepend(records, start) {
    const older = new Lines(document.createDocumentFragment());
    older.append(records);
    for (const first of this.lines.filter((line) => line.headless)) {
      const head = older.#last(first.stream, []);
      if (!head) continue;
      Object.assign(first, { text: head.text + first.text, at_ms: head.at_ms, headless: head.headless });
      fill(first);
      head.node.remove();
      older.lines.splice(older.lines.indexOf(head), 1);
    }
    this.node.prepend(older.node);
    this.lines.unshift(...older.lines);
    if (older.lines.length) this.batches.unshift({ count: older.lines.length, start });
  }

  /** Give up the oldest, in the pieces they came in, until 5,000 are left. Answers where the lines
   * that are left begin, or undefined when none had to go. */
  trimOldest() {
    let count = 0;
    while (this.lines.length - count > KEPT && this.batches.length > 1) count += this.batches.shift().count;
    for (const line of this.lines.splice(0, count)) line.node.remove();
    return count ? this.batches[0].start : undefined;
  }

  /** Give up the newest until 5,000 are left. Answers how many went. */
  trimNewest() {
    const gone = this.lines.splice(KEPT);
    for (const line of gone) line.node.remove();
    return gone.length;
  }

  /** All of it as text, without colours. */
  text() {
    return this.lines.map((line) => bare(line.text)).join("\n");
  }

  /** Lines that have these words in. */
  matching(words) {
    const wanted = words.toLocaleLowerCase();
    if (!wanted) return [];
    return this.lines.filter((line) => bare(line.text).toLocaleLowerCase().includes(wanted));
  }

  #last(stream, fresh) {
    const same = (line) => line.stream === stream;
    return fresh.findLast(same) ?? this.lines.findLast(same);
  }
}

const started = (record) => ({
  stream: WORDS[record.stream] ? record.stream : "l",
  at_ms: record.at_ms,
  text: record.text,
  headless: record.continued,
  whole: false,
  node: null,
});

function made(line) {
  const at = new Date(line.at_ms || NaN);
  const known = !Number.isNaN(at.getTime());
  line.node = h("div", { class: `log-line log-${line.stream}` },
    h("time", known ? { datetime: at.toISOString(), title: full.format(at) } : null,
      known ? clock.format(at) : ""),
    h("span", { class: "log-stream" }, WORDS[line.stream]),
    h("span", { class: "log-text" }));
  fill(line);
  return line.node;
}

function fill(line) {
  const text = line.whole ? line.text : line.text.slice(0, CUT);
  const shown = pieces(text).map((part) =>
    part.look ? h("span", { class: part.look }, part.text) : part.text);
  const more = line.text.length > text.length && h("button", {
    type: "button", class: "log-more",
    on: { click: () => { line.whole = true; fill(line); } },
  }, `Show all ${line.text.length.toLocaleString("en")} characters`);
  line.node.lastChild.replaceChildren(...[line.headless && "…", ...shown, more].filter(Boolean));
}
