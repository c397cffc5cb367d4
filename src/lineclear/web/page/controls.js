// Every act on a job or lane: the two presses, "Asked…" until the stream brings it, the refusal in its
// row, Undo. Used by rows, lanes, screens and keys. A double press must never count as a second one.

import { act, unique } from "./api.js";
import { dialogs } from "./dialogs.js";
import { h, order, set, text } from "./dom.js";
import { live } from "./live.js";
import { announce, toast } from "./toast.js";
import { acts, words } from "./words.js";

const AGAIN_FROM_MS = 600;
const AGAIN_UNTIL_MS = 6_000;
const NO_ANSWER_MS = 5_000;
const SETTLED_MS = 2_000; // an act on a lane that changed nothing brings nothing
const NOTE_MS = 30_000;
const MOVES = ["top", "up", "down", "bottom"];

/** What each kind asks of the server: path, body, and which entry of row.acts allows it. */
const KINDS = {
  ...Object.fromEntries(MOVES.map((to) => [to, { path: "move", body: { to }, needs: "move" }])),
  retryFirst: { path: "retry", body: { first: true }, needs: "retry" },
  stop: { twice: true },
  kill: { twice: true },
};

/** "change" {ids}: what a row or lane says of its controls is different now. */
export const controls = new EventTarget();

let armed = null; // {key, id, twice, at, said, timer, seen}
const asked = new Map(); // key -> {id, version, answer, timer}
const notes = new Map(); // id -> {text, tone, timer}

const changed = (...ids) => controls.dispatchEvent(Object.assign(new Event("change"), { ids: new Set(ids) }));

export const mayAct = () => live.me?.role !== "view";
export const canAct = () => mayAct() && (live.fresh || live.status === "connecting");
export const whyNot = () => (!mayAct() ? words.viewOnlyWhy : canAct() ? "" : words.notNow);
export const allowed = (kind, row) => mayAct() && row.acts.includes(KINDS[kind]?.needs ?? kind);

/** What the row's second line has to say of its controls: {text, tone} or null. */
export function noteOf(id) {
  if (armed?.id === id) return { text: armed.said, tone: "bad", armed: true };
  return notes.get(id) ?? null;
}

export const isArmed = (key) => armed?.key === key;
export const isAsked = (key) => asked.has(key);
export const keyOf = (kind, row) => `${row.id}:${kind}`;

export function disarm() {
  if (!armed) return false;
  clearTimeout(armed.timer);
  const { id } = armed;
  armed = null;
  changed(id);
  thaw();
  return true;
}

export function note(id, said, tone = "bad") {
  clearTimeout(notes.get(id)?.timer);
  notes.delete(id);
  if (said) notes.set(id, { text: said, tone, timer: setTimeout(() => note(id, ""), NOTE_MS) });
  changed(id);
}

const signature = (row) => row && `${row.state} ${row.look} ${row.wish} ${row.try}`;

/**
 * One press of one button. `what`: {key, id, twice, said, send(key) -> promise, done(answer), version,
 * at}. Arms, fires or ignores; answers whether something was sent.
 */
export function press(what) {
  if (!canAct() || asked.has(what.key)) return false;
  const now = performance.now();
  if (what.twice) {
    if (armed?.key === what.key) {
      if (now - armed.since < AGAIN_FROM_MS) return false;
    } else {
      disarm();
      const timer = setTimeout(disarm, AGAIN_UNTIL_MS);
      armed = { ...what, since: now, timer, seen: signature(live.row(what.id)) };
      note(what.id, "");
      announce(what.said, { own: true });
      return false;
    }
  }
  disarm();
  send(what);
  return true;
}

async function send(what) {
  const entry = { id: what.id, version: what.version ?? null, answer: null };
  entry.timer = setTimeout(() => note(what.id, words.noAnswer, "warn"), NO_ANSWER_MS);
  asked.set(what.key, entry);
  note(what.id, "");
  try {
    entry.answer = await what.send(unique());
    if (entry.answer?.version === entry.version) settle(what.key);
    else confirmed(what.key);
    if (entry.version === null) setTimeout(() => settle(what.key), SETTLED_MS);
    what.done?.(entry.answer);
  } catch (problem) {
    settle(what.key);
    live.put(problem.job);
    note(what.id, problem.detail ?? String(problem));
    announce(problem.detail ?? String(problem), { own: true });
  }
}

/** Settled once the stream has brought what was asked for: a newer row, or anything for a lane. */
function confirmed(key) {
  const entry = asked.get(key);
  if (!entry) return; // the stream was faster than the answer
  if (entry.version === null) return entry.heard && entry.answer !== null && settle(key);
  const row = live.row(entry.id);
  const gone = !row && entry.answer !== null;
  if (gone || (row && row.version > entry.version)) settle(key);
}

function settle(key) {
  const entry = asked.get(key);
  if (!entry) return;
  clearTimeout(entry.timer);
  asked.delete(key);
  if (notes.get(entry.id)?.text === words.noAnswer) note(entry.id, "");
  else changed(entry.id);
  // One's own act may move rows at once, whatever else holds the order.
  order.dispatchEvent(new Event("mine"));
}

/** A press on one of a job's own controls: by its button, its sheet or its key. */
export function ask(kind, row, { at = null } = {}) {
  const { path = kind, body = {}, twice = false } = KINDS[kind] ?? {};
  const say = acts[kind];
  return press({
    key: keyOf(kind, row),
    id: row.id,
    twice,
    said: words.pressAgain(say.again, row.stakes),
    version: row.version,
    send: (key) => act("POST", `jobs/${row.id}/${path}`, body, { version: row.version, key }),
    done(answer) {
      const lane = live.state?.lanes.find((each) => each.name === row.lane);
      const moved = MOVES.includes(kind) && answer?.place;
      const said = moved ? words.place(row.title, answer.place, lane?.waiting ?? answer.place) : say.done(row.title);
      if (kind === "remove" || !moved) toast(said, { undo: answer?.undo ?? null, at });
      else announce(said, { own: true });
    },
  });
}

/** A button whose box stays the same whatever it says. `label` is what it says at rest. */
export function plainButton(label, on, { name = null, tone = "", cls = "" } = {}) {
  const inner = h("span", null, label);
  const props = { type: "button", class: `btn ${cls}`.trim(), "aria-label": name, dataset: { label, tone }, on: { click: on } };
  return h("button", props, inner);
}

/** Shows on `el` where its act stands. */
export function show(el, { key, label, name, againName }) {
  const again = armed?.key === key;
  const waits = asked.has(key);
  text(el.firstChild, again ? words.again : waits ? words.asked : label);
  set(el, "aria-label", again ? againName : waits ? null : name);
  set(el, "aria-disabled", waits || !canAct() ? "true" : null);
  set(el, "title", whyNot() || (el.dataset.short ? name : null));
  el.classList.toggle("armed", again);
}

/** A control of a job; `el.update(row)` keeps it true. `short`: its sign instead of its word. */
export function button(kind, row, { short = false } = {}) {
  const say = acts[kind];
  const label = short ? say.short : say.label;
  const el = plainButton(label, () => ask(kind, el.row, { at: el }), { cls: short ? "sign" : "" });
  el.dataset.kind = kind;
  if (short) el.dataset.short = "1";
  el.update = (next) => {
    el.row = next;
    const name = say.name(next.title);
    const againName = say.again && words.pressAgainName(say.again, next.title);
    show(el, { key: keyOf(kind, next), label, name, againName });
  };
  el.update(row);
  return el;
}

// What disarms, and what keeps the order still.

let down = false;
const thaw = () => setTimeout(() => !order.frozen() && order.dispatchEvent(new Event("thaw")), 400);

function focusInRow() {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return Boolean(at?.closest?.(".row") && at.matches(":focus-visible"));
}

order.frozen = () => down || armed !== null || dialogs.current !== null || focusInRow();

addEventListener("pointerdown", (event) => {
  down = true;
  const on = event.composedPath().find((node) => node.classList?.contains("btn"));
  if (!on?.classList.contains("armed")) disarm();
}, true);
for (const type of ["pointerup", "pointercancel"]) {
  addEventListener(type, () => {
    down = false;
    thaw();
  }, true);
}
addEventListener("focusout", thaw, true);
addEventListener("keydown", (event) => event.key === "Escape" && disarm(), true);

function heard({ ids }) {
  if (armed && ids?.has(armed.id) && signature(live.row(armed.id)) !== armed.seen) disarm();
  for (const [key, entry] of [...asked]) {
    entry.heard = true;
    if (entry.version === null || ids?.has(entry.id)) confirmed(key);
  }
}
for (const type of ["rows", "snapshot", "queue", "order"]) live.addEventListener(type, heard);
live.addEventListener("status", () => !live.fresh && disarm());
