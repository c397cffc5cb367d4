// Ended jobs as a table on a desk, as rows on a phone. Used by the History screen. A live update
// patches what is there; it never adds, moves or takes away a row.

import * as controls from "./controls.js";
import { h, set, text, visible } from "./dom.js";
import { history as words } from "./jobwords.js";
import { live } from "./live.js";
import { duration, moment } from "./prose.js";
import { link } from "./router.js";
import { row as makeRow } from "./rows.js";

const WIDE = matchMedia("(min-width: 44em)");
const COLUMNS = ["state", "job", "kind", "lane", "ended", "took", "controls"];

/** Answers {node, update(row), close()}. */
export function historyList(rows) {
  const node = h("div", { class: "history-list" });
  const known = new Map(rows.map((row) => [row.id, row]));
  let shown = new Map();

  function draw() {
    const make = WIDE.matches ? tableRow : (row) => makeRow(row);
    shown = new Map([...known].map(([id, row]) => [id, make(row)]));
    const all = [...shown.values()];
    node.replaceChildren(WIDE.matches ? table(all) : h("ol", { class: "rows" }, ...all));
  }

  function update(row) {
    known.set(row.id, row);
    shown.get(row.id)?.update(row);
  }

  const again = ({ ids }) => {
    for (const [id, row] of known) if (!ids || ids.has(id)) shown.get(id)?.update(row);
  };
  const status = () => again({});
  WIDE.addEventListener("change", draw);
  controls.controls.addEventListener("change", again);
  live.addEventListener("status", status);
  draw();
  return {
    node,
    update,
    close() {
      WIDE.removeEventListener("change", draw);
      controls.controls.removeEventListener("change", again);
      live.removeEventListener("status", status);
    },
  };
}

function table(rows) {
  return h("table", null, h("caption", { class: "unseen" }, words.caption),
    h("colgroup", null, ...COLUMNS.map((name) => h("col", { class: `col-${name}` }))),
    h("thead", null, h("tr", null, ...COLUMNS.map((name) => h("th", { scope: "col" },
      name === "controls" ? h("span", { class: "unseen" }, words.controls) : words[name])))),
    h("tbody", null, ...rows));
}

function tableRow(data) {
  const glyph = h("span", { class: "glyph", "aria-hidden": "true" });
  const word = h("b", { class: "word" });
  const title = h("a", { class: "title" });
  const why = h("span", { class: "why" });
  const hidden = h("span", { class: "hidden-mark" });
  const [kind, lane, took] = [h("td"), h("td"), h("td", { class: "num" })];
  const ended = h("td", { class: "num" });
  const act = h("td", { class: "act" });
  const tr = h("tr", { class: "history-row" }, h("td", null, glyph, " ", word),
    h("th", { scope: "row" }, title, hidden, why), kind, lane, ended, took, act);
  let button = null;
  tr.update = (row) => {
    tr.row = row;
    set(tr, "data-id", row.id);
    set(tr, "data-tone", row.tone);
    text(glyph, row.glyph);
    text(word, row.word);
    text(title, visible(row.title));
    set(title, "href", link(`jobs/${row.id}`));
    text(hidden, row.hidden ? ` · ${words.cleared}` : "");
    const noted = controls.noteOf(row.id);
    text(why, noted?.text ?? visible(row.error ?? ""));
    why.classList.toggle("said", Boolean(noted));
    text(kind, visible(row.task));
    text(lane, visible(row.lane));
    if (ended.told !== row.ended_ms) {
      ended.told = row.ended_ms;
      ended.replaceChildren(row.ended_ms ? moment(row.ended_ms) : "");
    }
    text(took, row.worked_s > 0 ? duration(row.worked_s * 1000) : "");
    const can = controls.allowed("retry", row) && row.state !== "done";
    if (can && !button) act.append((button = controls.button("retry", row)));
    else if (!can && button) {
      if (button === document.activeElement) title.focus({ preventScroll: true });
      button.remove();
      button = null;
    }
    button?.update(row);
  };
  tr.update(data);
  return tr;
}
