// A log that grows: its last lines, followed while the view is at the end, earlier ones on demand.
// Used by the Log and Job screens. It never moves what somebody reads: while the view is not at the
// end, new lines stand below it or are only counted.

import { get } from "./api.js";
import { h, text } from "./dom.js";
import { live } from "./live.js";
import { Lines } from "./loglines.js";
import { logTools } from "./logtools.js";
import { duration, tell as say } from "./prose.js";
import { count } from "./words.js";

const AT_END_PX = 40;
const FIRST = 200;
const EARLIER = 1000;
const GONE = "It printed nothing, or its log is gone.";

let watcher = null; // the one view whose log the stream carries

/** row: () => the job's row now; attempt: null follows the newest try. */
export function logView({ job, row, attempt = null, first = FIRST, tools = true, name = "Log" }) {
  let number = attempt;
  let start = null; // where the lines that are here begin; null: at the log's beginning
  let cursor = null; // where they end
  let over = null;
  let unread = 0;
  let following = true;
  let detached = false; // the end of the log is not among the lines
  let loading = 0;
  let ready = false;
  let closed = false;

  const list = h("div", { class: "log-lines" });
  const lines = new Lines(list);
  const earlier = h("button", { type: "button", class: "log-earlier", hidden: true,
    on: { click: () => older() } }, "Earlier lines");
  const end = h("p", { class: "log-end", hidden: true });
  const pane = h("div", { class: "log", role: "log", "aria-live": "off", "aria-label": name, tabindex: "0" },
    earlier, list, end);
  const fresh = h("button", { type: "button", class: "log-new", hidden: true,
    on: { click: () => toEnd() } });
  const bar = tools ? logTools({ pane, lines, job, attempt: () => number }) : null;
  const node = h("div", { class: "log-view" }, bar?.node, h("div", { class: "log-frame" }, pane, fresh));

  const self = { grow };
  const jump = () => { pane.scrollTop = pane.scrollHeight; };
  const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight <= AT_END_PX;

  function show() {
    fresh.hidden = following || (unread === 0 && !detached);
    text(fresh, unread ? `${count(unread, "new line")} ↓` : "To the end ↓");
    earlier.hidden = start === null;
    const empty = lines.lines.length === 0;
    const told = over ? [empty && GONE, over].filter(Boolean).join(" ") : empty ? nothing() : "";
    end.hidden = !told || detached;
    say(end, told);
    pane.dataset.following = following ? "yes" : "no";
  }

  function nothing() {
    const now = row();
    if (now?.state === "queued") return "No output yet. It has not started.";
    if (now?.state !== "running") return GONE;
    if (!now.started_ms) return "No output yet.";
    return `No output yet. Started ${duration(live.now() - now.started_ms)} ago.`;
  }

  async function load() {
    const turn = ++loading;
    ready = false;
    const found = await get(`jobs/${job}/log`, { try: attempt, lines: first });
    if (closed || turn !== loading) return;
    ready = true;
    lines.clear();
    lines.append(found.lines, found.start);
    ({ start, end: cursor, over, try: number } = found);
    unread = 0;
    detached = false;
    following = true;
    show();
    jump();
    bar?.changed();
    if (over) leave();
    else watch();
  }

  function watch() {
    watcher = self;
    live.watchLog(job, cursor, grow);
  }

  function leave() {
    if (watcher !== self) return;
    watcher = null;
    live.unwatch();
  }

  function grow(news) {
    if (closed || !ready || (attempt !== null && news.try !== attempt)) return;
    if (news.try !== number) return again(); // another try: its log begins anew
    const room = !detached && (following || !lines.full);
    if (room) lines.append(news.lines, cursor);
    else detached = true;
    if (!following) unread += news.lines.filter((line) => !line.continued).length;
    cursor = news.end ?? cursor;
    over = news.over ?? over;
    if (following) start = lines.trimOldest() ?? start;
    show();
    if (following) jump();
    bar?.changed();
    if (over) leave();
  }

  const again = () => load().catch(failed);
  const failed = (problem) => {
    if (!closed) say(end, problem.detail ?? problem.message);
    end.hidden = false;
  };

  async function older() {
    const found = await get(`jobs/${job}/log`, { try: number, lines: EARLIER, before: start });
    if (closed) return;
    const below = pane.scrollHeight - pane.scrollTop;
    following = false;
    lines.prepend(found.lines, found.start);
    if (lines.trimNewest()) detached = true;
    start = found.start;
    show();
    pane.scrollTop = pane.scrollHeight - below;
    bar?.changed();
  }

  function toEnd() {
    if (detached) return again();
    following = true;
    unread = 0;
    show();
    jump();
  }

  function scrolled() {
    const now = atEnd() && !detached;
    if (now === following) return;
    following = now;
    if (now) unread = 0;
    show();
  }

  async function polled() {
    if (live.status !== "polling" || over || !ready) return;
    const found = await get(`jobs/${job}/log`, { try: number, lines: EARLIER, after: cursor });
    grow({ ...found, job });
  }

  const tick = () => ready && !lines.lines.length && !over && show();
  const sized = new ResizeObserver(() => following && jump());
  sized.observe(pane);
  sized.observe(list);
  pane.addEventListener("scroll", scrolled, { passive: true });
  live.addEventListener("tick", tick);
  live.addEventListener("snapshot", polled);
  again();

  return {
    node,
    /** The try whose lines are shown. */
    attempt: () => number,
    /** A try began, or the job's state changed: an ended log may go on. */
    changed: () => { if (over && attempt === null) again(); else show(); },
    keys: { f: () => (following ? void ((following = false), show()) : toEnd()), ...bar?.keys },
    close() {
      closed = true;
      leave();
      sized.disconnect();
      live.removeEventListener("tick", tick);
      live.removeEventListener("snapshot", polled);
    },
  };
}
