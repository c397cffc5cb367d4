// The head of the Job screen: title, state, every control that is possible now, progress. Used by
// screens/job.js. As in rows.js, an update keeps each element that can hold the focus.

import * as controls from "./controls.js";
import { h, set, text, visible } from "./dom.js";
import { facts } from "./jobparts.js";
import { tell } from "./prose.js";
import { link } from "./router.js";
import { bar } from "./rows.js";

const KINDS = ["stop", "release", "hold", "force", "top", "up", "down", "bottom", "retry", "retryFirst", "remove", "kill"];
const OVER = ["done", "failed", "cancelled"];

/** Answers {node, progress, update(job), close()}. */
export function jobHead(job, { compact = false } = {}) {
  const glyph = h("span", { class: "glyph", "aria-hidden": "true" });
  const title = compact ? h("a", { class: "title", href: link(`jobs/${job.id}`) }) : h("span", { class: "title" });
  const word = h("b", { class: "word" });
  const detail = h("span", { class: "detail" });
  const told = h("p", { class: "job-state" }, word, detail);
  const said = h("p", { class: "said", hidden: true });
  const acts = h("div", { class: "job-acts", role: "group", "aria-label": "Controls" });
  const known = h("div");
  const node = h("header", { class: "job-head" }, h("h2", null, glyph, " ", title), told, said, acts, !compact && known);
  const rail = h("div", { class: "bar", role: "progressbar", "aria-valuemin": 0, hidden: true }, h("i"));
  const amount = h("p", { class: "amount" });
  const note = h("p", { class: "job-note" });
  const progress = h("section", { class: "job-progress", hidden: true, "aria-label": "Progress" }, rail, amount, note);
  const buttons = new Map();
  let now = job;
  let shown = "";

  function update(next) {
    now = next;
    set(node, "data-tone", next.tone);
    set(node, "data-state", next.state);
    text(glyph, next.glyph);
    text(title, visible(next.title));
    text(word, next.word);
    tell(detail, next.detail ? ` · ${next.detail}` : "");
    const noted = controls.noteOf(next.id);
    said.hidden = !noted;
    if (noted) tell(said, noted.text);
    set(said, "data-tone", noted?.tone);
    const facing = JSON.stringify([next.lane, next.key, next.priority, next.hidden]);
    if (facing !== shown) known.replaceChildren(facts(next));
    shown = facing;
    bar(rail, next);
    tell(amount, next.progress);
    amount.hidden = !next.progress;
    text(note, visible(next.note ?? ""));
    note.hidden = !next.note;
    progress.hidden = rail.hidden && amount.hidden && note.hidden;
    progress.classList.toggle("over", OVER.includes(next.state));
    show();
  }

  function show() {
    const possible = KINDS.filter((kind) => controls.allowed(kind, now));
    for (const [kind, el] of buttons) {
      if (possible.includes(kind)) continue;
      if (el === document.activeElement) node.closest("main")?.focus({ preventScroll: true });
      buttons.delete(kind);
      el.remove();
    }
    let before = null;
    for (const kind of possible) {
      if (!buttons.has(kind)) {
        const made = controls.button(kind, now);
        buttons.set(kind, made);
        if (before) before.after(made);
        else acts.prepend(made);
      }
      before = buttons.get(kind);
      before.update(now);
    }
    acts.hidden = possible.length === 0;
  }

  const changed = ({ ids }) => (!ids || ids.has(now.id)) && update(now);
  controls.controls.addEventListener("change", changed);
  return {
    node,
    progress,
    update,
    close: () => controls.controls.removeEventListener("change", changed),
  };
}
