// The lanes and what has ended, drawn at most once for each frame. Used by Now (every lane) and the
// panel (one). While something is armed, open or focused it patches rows and leaves their order alone.

import { controls, mayAct } from "./controls.js";
import { h, list, order } from "./dom.js";
import { endedSection, laneSection, Rows } from "./lanes.js";
import { live } from "./live.js";
import { link } from "./router.js";
import { words } from "./words.js";

export function board({ lane = null, drawn = () => {} } = {}) {
  const rows = new Rows();
  const lanes = h("div", { class: "lanes" });
  const ended = endedSection(rows, { lane });
  const add = h("a", { class: "btn lead", href: link("add") }, h("span", null, words.add));
  const hint = h("p", null, words.nothing[0], h("code", null, words.nothing[1]));
  const nothing = h("div", { class: "nothing", hidden: true }, hint, h("p", null, add));
  const el = h("div", { class: "column" }, nothing, lanes, ended);
  const dirty = new Set();
  let structure = false;
  let forced = false;
  let frame = 0;

  function soon(ids) {
    for (const id of ids ?? []) dirty.add(id);
    structure = true;
    frame ||= requestAnimationFrame(render);
  }

  function render() {
    frame = 0;
    if (!live.state) return;
    rows.update(dirty);
    dirty.clear();
    if (structure) lists(live.state, forced);
    structure = forced = false;
  }

  function lists(state, force) {
    const shown = state.lanes.filter((each) => lane === null || each.name === lane);
    const solo = shown.length === 1;
    const focus = el.getRootNode().activeElement;
    list(lanes, shown, {
      key: (each) => `${each.name}${solo ? " alone" : ""}`,
      make: (each) => laneSection(each.name, rows, { solo }),
      force: true,
    });
    for (const section of lanes.children) section.update(state, { force });
    ended.update(state, { force });
    const idle = !state.running.length && shown.every((each) => !each.running && !each.waiting);
    ended.hidden = !state.ended.some((row) => lane === null || row.lane === lane);
    nothing.hidden = !idle || !mayAct() || lane !== null;
    lanes.hidden = idle && solo && lane === null;
    // A job that went from one list to another keeps the focus, but for a removed one.
    const now = el.getRootNode().activeElement;
    const removed = focus?.closest?.(".row")?.dataset.look === "removed";
    if (focus !== now && !removed && focus?.isConnected && el.contains(focus)) focus.focus({ preventScroll: true });
    rows.forget();
    drawn(state);
  }

  const off = new AbortController();
  const on = (target, type, fn) => target.addEventListener(type, fn, { signal: off.signal });
  const every = () => (live.state ? [...live.state.running, ...live.state.waiting, ...live.state.ended].map((row) => row.id) : []);
  for (const type of ["rows", "snapshot"]) on(live, type, ({ ids }) => soon(ids));
  on(live, "queue", () => soon());
  on(live, "status", () => soon(every()));
  on(live, "hello", () => soon(every()));
  on(live, "order", () => {
    for (const section of lanes.children) section.reorder();
    soon();
  });
  on(live, "tick", () => {
    for (const section of lanes.children) section.tick();
  });
  on(controls, "change", ({ ids }) => soon(ids));
  on(order, "thaw", () => soon());
  on(order, "mine", () => {
    forced = true;
    soon();
  });
  if (live.state) lists(live.state, true);

  return {
    el,
    close() {
      off.abort();
      cancelAnimationFrame(frame);
      order.held.clear();
      order.dispatchEvent(new Event("held"));
    },
  };
}
