// One job as a row: made once, patched in place ever after. Used by Now, the panel and History.
// An update must never replace an element that can hold the focus, nor touch a text that is the same.

import * as controls from "./controls.js";
import { sheet } from "./dialogs.js";
import { h, set, text } from "./dom.js";
import { live } from "./live.js";
import { plain, tell } from "./prose.js";
import { link } from "./router.js";
import { words } from "./words.js";

const MENU = ["top", "up", "down", "bottom", "force", "hold", "release", "retry", "retryFirst", "stop", "kill", "remove"];
const UNANSWERED = ["silent", "worker_gone", "stopping_no_answer"];
const OVER = ["done", "failed", "cancelled"];

/** Which controls stand on the row itself, first the one a phone shows; the rest is behind ⋯. */
function onRow(row) {
  const can = (...kinds) => kinds.filter((kind) => controls.allowed(kind, row));
  if (row.state === "running") {
    const first = UNANSWERED.includes(row.look) ? can("kill", "stop") : can("stop");
    return { phone: first.slice(0, 1), desk: first.slice(0, 1) };
  }
  if (row.state === "queued") return { phone: [], desk: row.look === "held" ? can("release") : can("up", "remove") };
  const again = row.state === "done" ? [] : can("retry");
  return { phone: again, desk: again };
}

/** `412 of 980 pages, 42 percent, 45 to 70 minutes left` */
function spoken(progress) {
  return plain(progress)
    .replaceAll(" · ", ", ")
    .replaceAll(" %", " percent")
    .replaceAll("–", " to ")
    .replace(/\bmin\b/g, "minutes")
    .replace(/\bh\b/g, "hours");
}

/** Everything that can be done with a job, kept true while it is open. */
export function menu(row, at) {
  const items = () => {
    const now = live.row(row.id) ?? row;
    const kinds = MENU.filter((kind) => controls.allowed(kind, now));
    const made = kinds.map((kind) => {
      const el = (known[kind] ??= controls.button(kind, now));
      el.update(now);
      return el;
    });
    return [...made, { label: words.details, href: link(`jobs/${row.id}`) }];
  };
  const known = {};
  const open = sheet(row.title, items(), { at });
  let kinds = "";
  const fresh = ({ ids }) => {
    if (ids && !ids.has(row.id)) return;
    const now = live.row(row.id) ?? row;
    const next = MENU.filter((kind) => controls.allowed(kind, now)).join();
    if (next !== kinds) open.update(items());
    else for (const kind of Object.keys(known)) known[kind].update(now);
    kinds = next;
    const said = controls.noteOf(row.id);
    open.note.hidden = !said;
    text(open.note, plain(said?.text ?? ""));
  };
  fresh({});
  const fired = (event) => {
    const kind = event.target.closest?.("[data-kind]")?.dataset.kind;
    if (kind && controls.isAsked(`${row.id}:${kind}`)) open.close();
  };
  open.dialog.addEventListener("click", fired);
  const off = new AbortController();
  for (const target of [live, controls.controls]) {
    for (const type of ["rows", "snapshot", "status", "change"]) target.addEventListener(type, fresh, off);
  }
  open.dialog.addEventListener("gone", () => off.abort());
}

export function bar(el, row) {
  const shown = row.total > 0 && row.percent !== null && !OVER.includes(row.state);
  el.hidden = !shown;
  if (!shown) return;
  const part = Math.min(0.99, Math.max(0, (row.done ?? 0) / row.total));
  const width = `${(part * 100).toFixed(2)}%`;
  if (el.firstChild.style.width !== width) el.firstChild.style.width = width;
  set(el, "aria-valuemax", row.total);
  set(el, "aria-valuenow", Math.min(row.total, Math.max(0, row.done ?? 0)));
  set(el, "aria-valuetext", spoken(row.progress));
  set(el, "aria-label", row.title);
}

/** An <li> for a job; `li.update(row)` afterwards. `compact`: title, state and its one control. */
export function row(data, { compact = false } = {}) {
  const glyph = h("span", { class: "glyph", "aria-hidden": "true" });
  const title = h("a", { class: "title" });
  const word = h("b", { class: "word" });
  const detail = h("span", { class: "detail" });
  const said = h("p", { class: "said", hidden: true });
  const told = h("p", { class: "told" }, word, detail);
  const rail = h("div", { class: "bar", role: "progressbar", "aria-valuemin": 0, hidden: true }, h("i"));
  const amount = h("p", { class: "amount", hidden: true });
  const extra = h("span", { class: "note" });
  const acts = h("div", { class: "acts" });
  const more = controls.plainButton("⋯", () => menu(li.row, more), { cls: "sign more" });
  more.setAttribute("aria-haspopup", "dialog");
  const li = h("li", { class: compact ? "row compact" : "row" }, glyph, h("div", { class: "what" }, title, told, said), acts, h("div", { class: "far" }, rail, amount));
  const known = new Map();

  li.update = (next) => {
    li.row = next;
    set(li, "data-id", next.id);
    set(li, "data-look", next.look);
    set(li, "data-state", next.state);
    set(li, "data-tone", next.tone);
    text(glyph, next.glyph);
    text(title, next.title);
    set(title, "href", link(`jobs/${next.id}`));
    text(word, next.word);
    tell(detail, next.detail ? ` · ${next.detail}` : "");
    const noted = controls.noteOf(next.id);
    told.hidden = Boolean(noted?.armed);
    said.hidden = !noted;
    if (noted) tell(said, noted.text);
    set(said, "data-tone", noted?.tone);
    if (!compact) {
      bar(rail, next);
      const shown = !OVER.includes(next.state) && next.progress;
      amount.hidden = !shown;
      if (shown) {
        tell(amount, next.progress);
        text(extra, next.note ? ` · ${next.note}` : "");
        if (!extra.isConnected) amount.append(extra);
      }
    }
    update(next);
  };

  function update(next) {
    const { phone, desk } = onRow(next);
    const rest = MENU.some((kind) => controls.allowed(kind, next) && !desk.includes(kind));
    for (const [kind, el] of known) {
      if (!desk.includes(kind)) {
        known.delete(kind);
        leave(el);
      }
    }
    desk.forEach((kind, at) => {
      const el = known.get(kind) ?? controls.button(kind, next, { short: kind === "up" });
      known.set(kind, el);
      el.classList.toggle("desk", !phone.includes(kind));
      if (el.parentNode !== acts) acts.insertBefore(el, acts.children[at] ?? null);
      el.update(next);
    });
    more.classList.toggle("desk", phone.length > 0);
    set(more, "aria-label", words.more(next.title));
    if (rest && !compact && !more.isConnected) acts.append(more);
    else if (!rest) leave(more);
  }

  /** A control that is not possible any more; the focus it had goes to the title. */
  function leave(el) {
    if (el.getRootNode().activeElement === el) title.focus({ preventScroll: true });
    el.remove();
  }

  li.update(data);
  return li;
}
