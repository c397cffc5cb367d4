// What can be done with a lane, or with every lane: the sheets behind its buttons. Used by lanes.js and
// main.js. An act that takes work away names it and its number first.

import { act, get } from "./api.js";
import { controls, isAsked, noteOf, plainButton, press, show } from "./controls.js";
import { confirm, sheet } from "./dialogs.js";
import { h, text } from "./dom.js";
import { live } from "./live.js";
import { plain } from "./prose.js";
import { toast } from "./toast.js";
import { count, names, words } from "./words.js";

const DELAYS_S = [0, 60, 300, 900];
const laneNow = (name) => live.state.lanes.find((lane) => lane.name === name);
const runningIn = (name) => live.state.running.filter((row) => row.lane === name);
const path = (name, verb = "") => `lanes/${encodeURIComponent(name)}${verb && `/${verb}`}`;
export const laneId = (name) => `lane:${name ?? "*"}`;

/** One press of a lane's control; `name` null means every lane. */
function ask(name, verb, { method = "POST", to, body = {}, done, at, twice = false, said = "" }) {
  const key = `${laneId(name)}:${verb}`;
  const send = (once) => act(method, to, body, { key: once });
  return press({ key, id: laneId(name), twice, said, send, done, at });
}

export function pause(name, body = {}, at = null) {
  const n = name === null ? live.state.running.length : runningIn(name).length;
  const to = name === null ? "pause" : path(name, "pause");
  const done = () => {
    const holds = live.state.running.filter((row) => row.acts.includes("hold") && (!name || row.lane === name));
    const all = () => holds.forEach((row) => act("POST", `jobs/${row.id}/hold`));
    toast(words.paused(n), { at, action: holds.length ? { label: words.pauseToo, on: all } : null });
  };
  return ask(name, "pause", { to, body, at, done });
}

export function resume(name, at = null) {
  const to = name === null ? "resume" : path(name, "resume");
  return ask(name, "resume", { to, at, done: () => toast(words.resumed, { at }) });
}

/** For how long, and why. */
function pauseSheet(name, at) {
  const why = h("input", { type: "text", class: "input", maxlength: 200, "aria-label": words.why, placeholder: words.why });
  const morning = new Date(live.now());
  morning.setHours(7, 0, 0, 0);
  if (morning <= live.now()) morning.setDate(morning.getDate() + 1);
  const choice = (label, body) => ({
    label,
    on: () => pause(name, { ...body, ...(why.value.trim() ? { why: why.value.trim() } : {}) }, at),
  });
  sheet(
    words.pauseTitle(name === null ? words.everyLane : words.lane(name)),
    [
      choice(words.for15, { for_s: 900 }),
      choice(words.for60, { for_s: 3600 }),
      choice(words.until7, { until: morning.toISOString() }),
      choice(words.untilResumed, {}),
    ],
    { at, body: [why] },
  );
}

/** A number to be typed, with the verb beside it. */
function typed(label, { min, max, value = "", on }) {
  const field = h("input", { type: "number", class: "input", min, max, step: "any", value, required: true, "aria-label": label });
  const send = (event) => {
    event.preventDefault();
    on(Number(field.value));
  };
  const set = h("button", { type: "submit", class: "btn" }, h("span", null, words.set));
  return h("form", { class: "typed", on: { submit: send } }, h("label", null, h("span", null, label), field), set);
}

function change(name, verb, body, said, at) {
  return ask(name, verb, { method: "PATCH", to: path(name), body, at, done: () => toast(said, { at }) });
}

function delaySheet(name, at) {
  const set = (s) => change(name, "delay", { delay_s: s }, s ? words.delayIs(s) : words.delayOff, at);
  const now_s = laneNow(name).delay_s;
  const items = DELAYS_S.map((s) => ({
    label: s ? count(s / 60, "minute") : words.delayNone,
    current: s === now_s,
    on: () => set(s),
  }));
  const on = (minutes) => {
    open.close();
    set(Math.round(minutes * 60));
  };
  const open = sheet(words.delayTitle, [...items, typed(words.custom, { min: 0, max: 1440, on })], { at });
}

function slotsSheet(name, at) {
  const now = laneNow(name).slots;
  const set = (n) => change(name, "slots", { slots: n }, words.slotsIs(n), at);
  const items = [1, 2, 3, 4].map((n) => ({ label: words.slotsIs(n), current: n === now, on: () => set(n) }));
  const on = (n) => {
    open.close();
    set(Math.round(n));
  };
  const open = sheet(words.slotsTitle, [...items, typed(words.slotsOther, { min: 1, max: 64, value: now, on })], { at });
}

async function removeAll(name, at) {
  const lane = laneNow(name);
  const first = live.state.waiting.filter((row) => row.lane === name).map((row) => row.title);
  const most = first.slice(0, 5);
  const lines = [names([...most, ...Array(Math.max(0, lane.waiting - most.length))], 5)];
  const n = lane.waiting;
  if (!(await confirm({ title: words.removeAllTitle(n), lines, verb: words.removeVerb(n), at }))) return;
  const done = (answer) => toast(words.removed(answer.removed), { undo: answer.undo, at });
  ask(name, "clear", { to: path(name, "clear"), body: { expect: n }, at, done });
}

export function stopNow(name, at) {
  const rows = runningIn(name);
  const done = (answer) => toast(words.stopped(answer.jobs.length), { at });
  return ask(name, "stop-now", { to: path(name, "stop-now"), at, twice: true, said: words.stopNowAgain(rows), done });
}

/** The menu of one lane (`name`), or of all lanes (null). */
export function laneMenu(name, at) {
  if (name === null) return pauseSheet(null, at);
  const title = words.lane(name);
  const stop = plainButton(words.stopNow, () => stopNow(name, at) && open.close(), { tone: "bad" });
  const key = `${laneId(name)}:stop-now`;
  const items = () => {
    const all = [{ label: words.pauseFor, on: () => pauseSheet(name, at) }];
    const lane = laneNow(name);
    all.push({ label: words.delay, hint: lane.delay_s ? words.delayIs(lane.delay_s) : words.delayOff, on: () => delaySheet(name, at) });
    all.push({ label: words.slots, hint: words.slotsIs(lane.slots), on: () => slotsSheet(name, at) });
    if (lane.waiting) all.push({ label: words.removeAll, tone: "bad", on: () => removeAll(name, at) });
    if (runningIn(name).length) all.push(stop);
    return all;
  };
  const open = sheet(title, items(), { at });
  const fresh = () => {
    show(stop, { key, label: words.stopNow, name: words.stopNowName(name), againName: words.pressAgainName("stop now", title) });
    const said = noteOf(laneId(name));
    open.note.hidden = !said;
    text(open.note, plain(said?.text ?? ""));
    if (!runningIn(name).length && !isAsked(key)) stop.remove();
  };
  fresh();
  const off = new AbortController();
  watch(off.signal, fresh);
  open.dialog.addEventListener("gone", () => off.abort());
}

/** The Ended section: what failed and can be tried again, and what can be cleared. */
export async function failedIds(lane) {
  const ids = [];
  let before = null;
  for (let page = 0; page < 5; page++) {
    const found = await get("jobs", { state: "failed", lane, limit: 200, before });
    ids.push(...found.jobs.filter((row) => row.acts.includes("retry")).map((row) => row.id));
    before = found.next;
    if (!before) break;
  }
  return { ids, more: Boolean(before) };
}

export function retryAll(ids, at) {
  const done = ({ jobs, refused, undo }) => toast(words.retried(jobs.length, refused.length), { undo, at });
  return ask("ended", "retry-all", { to: "jobs/retry", body: { ids }, at, done });
}

export async function clearEnded(lane, at) {
  const found = await get("counts", { lane });
  const more = found.capped ? "+" : "";
  const sums = {
    done: [["done"], found.done],
    butFailed: [["done", "cancelled"], found.done + found.cancelled],
    all: [["done", "cancelled", "failed"], found.done + found.cancelled + found.failed],
  };
  let chosen = "done";
  const radio = (value, label) => {
    const pick = h("input", { type: "radio", name: "clear", value, checked: value === chosen, on: { change: () => (chosen = value) } });
    return h("label", { class: "choice" }, pick, h("span", null, label));
  };
  const choices = h(
    "fieldset",
    { class: "choices" },
    h("legend", { class: "unseen" }, words.clearTitle),
    radio("done", words.clearDone(sums.done[1] + more)),
    radio("butFailed", words.clearButFailed(sums.butFailed[1] + more)),
    radio("all", words.clearAll(sums.all[1] + more)),
  );
  const said = await confirm({ title: words.clearTitle, lines: [choices, words.clearLine], verb: () => words.clearVerb(sums[chosen][1]), at, tone: "", answer: () => chosen });
  if (!said) return;
  const [states, n] = sums[said];
  const body = { states, ...(lane ? { lane } : {}), ...(found.capped ? {} : { expect: n }) };
  const done = (answer) => toast(words.cleared(answer.cleared), { undo: answer.undo, at });
  ask("ended", "clear-ended", { to: "clear", body, at, done });
}

/** Calls `fn` on everything that can change what a lane's controls say. */
export function watch(signal, fn) {
  for (const type of ["rows", "snapshot", "queue", "status", "order", "tick"]) live.addEventListener(type, fn, { signal });
  controls.addEventListener("change", fn, { signal });
}
