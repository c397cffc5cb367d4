// The Now screen: the board, and on a desk the selected job beside it, which follows the focus. Opened
// by the router.

import { get } from "../api.js";
import { board } from "../board.js";
import { h, order, set } from "../dom.js";
import { number, words } from "../words.js";

const SELECT_MS = 150;
const PANE = matchMedia("(min-width: 80em)");
const TODAY = matchMedia("(min-width: 100em)");

export async function open(root, { live, me }) {
  const pane = h("aside", { class: "pane", "aria-label": words.pane });
  const today = h("aside", { class: "today", "aria-label": words.today });
  let selected = null;
  let job = null; // the screen in the pane
  let waits = 0;
  const shown = board({ drawn });
  root.append(h("div", { class: "now" }, shown.el, pane, today));

  function drawn(state) {
    mark();
    if (!PANE.matches || order.frozen()) return;
    const first = state.running[0] ?? state.waiting[0] ?? state.ended[0];
    if (selected === null && first) select(first.id);
  }

  function mark() {
    for (const li of root.querySelectorAll(".row")) set(li, "data-selected", li.row.id === selected ? "1" : null);
  }

  function select(id) {
    if (id === selected) return;
    selected = id;
    mark();
    clearTimeout(waits);
    waits = setTimeout(fill, job ? SELECT_MS : 0);
  }

  async function fill() {
    const id = selected;
    if (!PANE.matches || id === null) return;
    const { open: openJob } = await import("./job.js").catch(() => ({}));
    if (!openJob) return; // the connection is lost: the page says so
    const place = h("div", { class: "pane-job" });
    const made = await openJob(place, { params: { id: String(id) }, query: new URLSearchParams(), live, me, compact: true });
    if (id !== selected) return made?.close?.();
    job?.close?.();
    job = made;
    pane.replaceChildren(place);
  }

  function picked(event) {
    const li = event.target.closest?.(".row");
    if (li && PANE.matches) select(li.row.id);
  }
  shown.el.addEventListener("focusin", picked);
  shown.el.addEventListener("click", picked);

  async function count() {
    const midnight = new Date(live.now());
    midnight.setHours(0, 0, 0, 0);
    const found = TODAY.matches && (await get("metrics", { since: midnight.toISOString() }).catch(() => null));
    if (!found) return;
    const line = (label, n) => h("div", null, h("dt", null, label), h("dd", null, number(n)));
    today.replaceChildren(h("h2", null, words.today), h("dl", null, words.todayOf(found).map(([label, n]) => line(label, n))));
  }
  count();

  const wide = () => (PANE.matches ? fill() : pane.replaceChildren());
  PANE.addEventListener("change", wide);
  return {
    close() {
      PANE.removeEventListener("change", wide);
      clearTimeout(waits);
      selected = null;
      job?.close?.();
      shown.close();
    },
  };
}
