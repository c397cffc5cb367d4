// A lane as a section: its sentence and controls, what runs in it and what waits, in order; and the
// section of what has ended. Used by Now and the panel. The lists are patched, never made anew.

import { get } from "./api.js";
import { ask as askJob, canAct, mayAct, noteOf, plainButton, show } from "./controls.js";
import { h, list, set, text } from "./dom.js";
import { clearEnded, failedIds, laneId, laneMenu, pause, resume, retryAll } from "./lanemenu.js";
import { live, settled } from "./live.js";
import { duration, tell } from "./prose.js";
import { link } from "./router.js";
import { row as makeRow } from "./rows.js";
import { number, words } from "./words.js";

const PAGE = 100;
const SETTLE_MS = 2_000;

/** Rows of a view by id, so that a job keeps its element while it goes from one list to another. */
export class Rows {
  #made = new Map();

  #get(data) {
    const known = this.#made.get(data.id);
    if (known) return known;
    const made = makeRow(data);
    this.#made.set(data.id, made);
    return made;
  }

  update(ids) {
    for (const id of ids) {
      const now = live.row(id);
      if (now) this.#made.get(id)?.update(now);
    }
  }

  /** The <ol> becomes these rows; what is in no list any more is forgotten. */
  fill(parent, rows, force) {
    list(parent, rows, { key: (row) => row.id, make: (row) => this.#get(row), force });
  }

  forget() {
    for (const [id, li] of this.#made) if (!li.parentNode) this.#made.delete(id);
  }
}

/** Pause or Resume, and what else there is: of one lane, or of all (null). */
export function laneActs(name) {
  const all = name === null;
  const main = plainButton("", () => (main.paused ? resume(name, main) : pause(name, {}, main)), {});
  const more = plainButton("⋯", () => laneMenu(more.lane, more), { cls: "sign more" });
  more.setAttribute("aria-haspopup", "dialog");
  if (all) main.dataset.kind = "everything";
  const where = all ? words.everyLane : words.lane(name);
  const el = h("div", { class: "acts" }, main, more);
  el.update = (lanes) => {
    el.hidden = !mayAct();
    main.paused = lanes.some((lane) => lane.pauses.length);
    main.classList.toggle("lead", main.paused);
    more.lane = all && lanes.length === 1 ? lanes[0].name : name;
    const label = main.paused ? (all ? words.resumeAll : words.resume) : all ? words.pauseAll : words.pause;
    main.dataset.label = label;
    show(main, { key: `${laneId(name)}:${main.paused ? "resume" : "pause"}`, label, name: `${main.paused ? words.resume : words.pause} ${where}` });
    set(more, "aria-label", words.more(more.lane === null ? where : words.lane(more.lane)));
    set(more, "aria-disabled", canAct() ? null : "true");
  };
  return el;
}

function heading(level, title, ...acts) {
  const n = h("span", { class: "n" });
  const el = h("div", { class: "head" }, h(level, null, title, n), ...acts);
  el.count = (value) => text(n, value === null ? "" : ` ${value}`);
  return el;
}

/** One lane. `solo`: the only one, its sentence and controls stand in the header. */
export function laneSection(name, rows, { solo }) {
  const level = solo ? "h2" : "h3";
  const sentence = h("p", { class: "lane-sentence" });
  const said = h("p", { class: "said", hidden: true });
  const acts = laneActs(name);
  const runs = heading(level, words.running);
  const running = h("ol", { class: "rows" });
  const waits = heading(level, words.waiting);
  const waiting = h("ol", { class: "rows" });
  const startNext = plainButton(words.startNext, () => startNext.row && askJob("force", startNext.row, { at: startNext }));
  const left = h("span");
  const delay = h("p", { class: "delay", hidden: true }, left, startNext);
  const more = h("button", { type: "button", class: "btn more-rows", hidden: true, on: { click: load } }, h("span"));
  const empty = h("p", { class: "empty" });
  const top = h("div", { class: "lane-top" }, h("div", null, h("h2", null, name), sentence), acts);
  const el = h("section", { class: "lane", "aria-label": words.lane(name) }, solo ? null : top, said, runs, running, waits, delay, waiting, empty, more);
  let beyond = []; // rows after the window, once asked for
  let next = null;

  async function load() {
    const have = beyond.length;
    text(more.firstChild, words.loading);
    const path = `lanes/${encodeURIComponent(name)}/waiting`;
    const found = await get(path, { limit: PAGE, after: next }).catch(() => null);
    if (!found) return update(el.state);
    beyond = have ? [...beyond, ...found.jobs] : found.jobs;
    next = found.next;
    update(el.state);
  }

  /** The pages already shown, once more: their order has changed. */
  const refresh = settled(async () => {
    let after = null;
    let found = [];
    while (found.length < beyond.length) {
      const page = await get(`lanes/${encodeURIComponent(name)}/waiting`, { limit: PAGE, after });
      found = [...found, ...page.jobs];
      after = page.next;
      if (!after) break;
    }
    beyond = found;
    next = after;
    update(el.state);
  }, SETTLE_MS);

  function update(state, { force = false } = {}) {
    el.state = state;
    const lane = state.lanes.find((each) => each.name === name);
    if (!lane) return;
    const mine = (row) => row.lane === name;
    const runs_now = state.running.filter(mine);
    const window = state.waiting.filter(mine);
    const seen = new Set(window.map((row) => row.id));
    const rest = beyond.map((row) => live.row(row.id) ?? row).filter((row) => row.state === "queued" && !seen.has(row.id));
    rows.fill(running, runs_now, force);
    rows.fill(waiting, [...window, ...rest], force);
    tell(sentence, lane.sentence);
    acts.update([lane]);
    runs.count(runs_now.length ? number(runs_now.length) : null);
    waits.count(lane.waiting ? number(lane.waiting) + (lane.counts_capped ? "+" : "") : null);
    runs.hidden = runs_now.length === 0;
    waits.hidden = lane.waiting === 0 && runs_now.length === 0;
    const hidden = lane.waiting - window.length - rest.length;
    more.hidden = hidden <= 0 || window.length === 0;
    text(more.firstChild, words.andMore(hidden));
    empty.hidden = lane.waiting > 0;
    const one = runs_now.length === 1 && solo;
    text(empty, one ? words.noWaitingUntil(runs_now[0].title) : runs_now.length ? words.noWaiting : solo ? "" : words.laneEmpty);
    set(el, "data-paused", lane.pauses.length ? "1" : null);
    set(el, "data-unserved", lane.waiting && !lane.workers ? "1" : null);
    tick();
    const noted = noteOf(laneId(name));
    said.hidden = !noted;
    tell(said, noted?.text ?? "");
  }

  function tick() {
    const lane = el.state?.lanes.find((each) => each.name === name);
    const ms = (lane?.next_start_ms ?? 0) - live.now();
    startNext.row = el.state?.waiting.find((row) => row.lane === name && row.acts.includes("force"));
    delay.hidden = !lane || ms <= 0;
    startNext.hidden = !startNext.row || !mayAct();
    text(left, words.delayLeft(duration(ms + 999)));
    if (startNext.row) show(startNext, { key: `${startNext.row.id}:force`, label: words.startNext, name: null });
  }

  Object.assign(el, { update, tick, reorder: () => beyond.length && refresh() });
  return el;
}

/** What has ended last, with its two acts. `lane` null: of every lane. */
export function endedSection(rows, { lane = null } = {}) {
  const again = plainButton("", () => again.ids && retryAll(again.ids, again), { cls: "desk-wide" });
  const clear = plainButton(words.clear, () => clearEnded(lane, clear));
  const said = h("p", { class: "said", hidden: true });
  const head = heading("h2", words.ended, h("div", { class: "acts" }, again, clear));
  const ended = h("ol", { class: "rows" });
  const all = h("p", { class: "empty" }, h("a", { href: link("history") }, words.allEnded));
  const el = h("section", { class: "ended" }, head, said, ended, all);
  let seen = null;

  async function failed(key) {
    seen = key;
    const found = key ? await failedIds(lane).catch(() => null) : null;
    if (seen !== key) return;
    again.ids = found?.ids.length ? found.ids : null;
    again.label = found ? words.retryAll(found.ids.length, found.more) : "";
    paint();
  }

  function paint() {
    again.hidden = !again.ids || !mayAct();
    clear.hidden = !mayAct() || !ended.children.length;
    again.dataset.label = again.label ?? "";
    show(again, { key: `${laneId("ended")}:retry-all`, label: again.label ?? "", name: null });
    show(clear, { key: `${laneId("ended")}:clear-ended`, label: words.clear, name: null });
    const noted = noteOf(laneId("ended"));
    said.hidden = !noted;
    tell(said, noted?.text ?? "");
  }

  el.update = (state, { force = false } = {}) => {
    const shown = state.ended.filter((row) => lane === null || row.lane === lane);
    rows.fill(ended, shown, force);
    all.hidden = shown.length === 0;
    const key = shown.filter((row) => row.acts.includes("retry") && row.state === "failed").map((row) => row.id).join();
    if (key !== seen) failed(key);
    paint();
  };
  return el;
}
