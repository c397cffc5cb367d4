// The Now screen: each lane with what runs and what waits, what has ended last, and on a desk the
// selected job beside it. Opened by the router. It must never re-order what somebody is about to press.

import { get } from "../api.js";
import { controls, mayAct } from "../controls.js";
import { h, list, order, set, text } from "../dom.js";
import { endedSection, laneSection, Rows } from "../lanes.js";
import { tell } from "../prose.js";
import { link } from "../router.js";
import { number, words } from "../words.js";

const SELECT_MS = 150;
const PANE = matchMedia("(min-width: 80em)");
const TODAY = matchMedia("(min-width: 100em)");

export async function open(root, { live, me }) {
  const rows = new Rows();
  const lanes = h("div", { class: "lanes" });
  const nothing = h(
    "div",
    { class: "nothing", hidden: true },
    h("p", null, words.nothing[0], h("code", null, words.nothing[1])),
    h("p", null, h("a", { class: "btn", href: link("add") }, h("span", null, words.add))),
  );
  const ended = endedSection(rows);
  const pane = h("aside", { class: "pane", "aria-label": words.pane });
  const today = h("aside", { class: "today", "aria-label": words.today });
  const column = h("div", { class: "column" }, nothing, lanes, ended);
  root.append(h("div", { class: "now" }, column, pane, today));

  const dirty = new Set();
  let structure = false;
  let forced = false;
  let frame = 0;
  let selected = null;

  function soon(ids, structural = true) {
    for (const id of ids ?? []) dirty.add(id);
    structure ||= structural;
    frame ||= requestAnimationFrame(render);
  }

  function render() {
    frame = 0;
    const { state } = live;
    if (!state) return;
    rows.update(dirty);
    dirty.clear();
    if (structure || forced) lists(state, forced);
    structure = forced = false;
  }

  function lists(state, force) {
    const focus = document.activeElement;
    const solo = state.lanes.length === 1;
    list(lanes, state.lanes, {
      key: (lane) => `${lane.name}${solo ? " alone" : ""}`,
      make: (lane) => laneSection(lane.name, rows, { solo }),
      force: true,
    });
    for (const section of lanes.children) section.update(state, { force });
    ended.update(state, { force });
    const idle = !state.running.length && state.lanes.every((lane) => !lane.waiting);
    nothing.hidden = !idle || !mayAct();
    lanes.hidden = idle && solo;
    ended.hidden = !state.ended.length;
    // A job that went from one list to another keeps the focus.
    if (focus !== document.activeElement && focus?.isConnected) focus.focus({ preventScroll: true });
    rows.forget();
    if (PANE.matches && selected === null && !order.frozen()) first(state);
  }

  function first(state) {
    const row = state.running[0] ?? state.waiting[0] ?? state.ended[0];
    if (row) select(row.id);
  }

  // The pane: the selected job, a little after the focus has come to rest.
  let shown = null;
  let waits = 0;
  function select(id) {
    if (id === selected) return;
    selected = id;
    for (const li of root.querySelectorAll(".row")) set(li, "data-selected", Number(li.dataset.id) === id ? "1" : null);
    clearTimeout(waits);
    waits = setTimeout(fill, shown ? SELECT_MS : 0);
  }

  async function fill() {
    const id = selected;
    if (!PANE.matches || id === null) return;
    const { open: openJob } = await import("./job.js");
    if (id !== selected) return;
    shown?.close?.();
    shown = null;
    const place = h("div", { class: "pane-job" });
    const made = await openJob(place, { params: { id: String(id) }, query: new URLSearchParams(), live, me, compact: true });
    if (id !== selected) return made?.close?.();
    shown = made;
    pane.replaceChildren(place);
  }

  const rowAt = (event) => event.target.closest?.(".row");
  const picked = (event) => rowAt(event) && PANE.matches && select(Number(rowAt(event).dataset.id));
  column.addEventListener("focusin", picked);
  column.addEventListener("click", picked);

  async function counts() {
    if (!TODAY.matches) return;
    const midnight = new Date(live.now());
    midnight.setHours(0, 0, 0, 0);
    const found = await get("metrics", { since: midnight.toISOString() }).catch(() => null);
    if (!found) return;
    const figures = Object.entries({ done: found.done, failed: found.failed, cancelled: found.cancelled });
    today.replaceChildren(
      h("h2", null, words.today),
      h("dl", null, figures.map(([name, n]) => (n === undefined ? null : h("div", null, h("dt", null, words[`n_${name}`]), h("dd", null, number(n)))))),
    );
  }

  const off = new AbortController();
  const on = (target, type, fn) => target.addEventListener(type, fn, { signal: off.signal });
  on(live, "rows", ({ ids }) => soon(ids));
  on(live, "snapshot", ({ ids }) => soon(ids));
  on(live, "order", () => {
    for (const section of lanes.children) section.reorder();
    soon(null);
  });
  on(live, "queue", () => soon(null));
  on(live, "status", () => soon(live.state ? [...live.state.running, ...live.state.waiting, ...live.state.ended].map((row) => row.id) : []));
  on(live, "tick", () => {
    for (const section of lanes.children) section.tick();
  });
  on(controls, "change", ({ ids }) => soon(ids));
  on(order, "thaw", () => soon(null));
  on(order, "mine", () => {
    forced = true;
    soon(null);
  });
  on(PANE, "change", () => (PANE.matches ? fill() : pane.replaceChildren()));
  text(pane, "");
  render();
  lists_first();
  counts();

  function lists_first() {
    if (live.state) lists(live.state, true);
    else tell(nothing.firstChild, "");
  }

  return {
    close() {
      off.abort();
      cancelAnimationFrame(frame);
      clearTimeout(waits);
      shown?.close?.();
      order.held.clear();
      order.dispatchEvent(new Event("held"));
    },
  };
}
