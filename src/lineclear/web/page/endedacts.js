// Acts on all ended jobs: retry the failed ones, clear them from the lists. Used by the History
// screen and by Now's list of ended jobs. Each names how many it touches before it does.

import { act, get } from "./api.js";
import { canAct, mayAct, plainButton, whyNot } from "./controls.js";
import { confirm } from "./dialogs.js";
import { h, set, text } from "./dom.js";
import { ended as words } from "./jobwords.js";
import { live } from "./live.js";
import { announce, toast } from "./toast.js";

const MOST = 1000; // the server takes so many ids at once
const CHOICES = { done: ["done"], unfailed: ["done", "cancelled"], all: ["done", "cancelled", "failed"] };

/** asked: the parameters of the list; changed(): show the list anew. Answers {node, ready}. */
export function endedActs({ asked, filtered, changed }) {
  const node = h("div", { class: "history-acts" });
  if (!mayAct()) return { node };
  const clear = plainButton(words.clear, () => clearEnded({ at: clear, changed }));
  node.append(clear);
  if (!asked.state || asked.state === "failed") retry(node, { asked, filtered, changed });
  const allow = () => {
    for (const button of node.querySelectorAll("button")) {
      set(button, "aria-disabled", canAct() ? null : "true");
      set(button, "title", whyNot() || null);
    }
  };
  allow();
  live.addEventListener("status", allow);
  return { node, close: () => live.removeEventListener("status", allow) };
}

async function retry(node, { asked, filtered, changed }) {
  let ids = null;
  let count;
  try {
    if (filtered) count = (ids = await failed(asked)).length;
    else count = (await get("counts")).failed;
  } catch {
    return; // the list itself says what is wrong
  }
  if (!count) return;
  const label = count > MOST ? words.retryMany(MOST) : words.retryAll(count);
  const button = plainButton(label, async () => {
    if (!canAct() || button.getAttribute("aria-disabled")) return;
    set(button, "aria-disabled", "true");
    try {
      ids ??= await failed(asked);
      const done = await act("POST", "jobs/retry", { ids });
      const first = done.refused[0];
      toast(first ? words.refused(done.refused.length, first.detail) : words.retried(done.jobs.length),
        { undo: done.undo, at: button });
      changed();
    } catch (problem) {
      set(button, "aria-disabled", null);
      toast(problem.detail ?? String(problem), { at: button, tone: "bad" });
    }
  });
  node.prepend(button);
}

async function failed(asked) {
  const ids = [];
  let before = null;
  do {
    const page = await get("jobs", { ...asked, state: "failed", hidden: null, before, limit: 200 });
    ids.push(...page.jobs.map((row) => row.id));
    before = page.next;
  } while (before && ids.length < MOST);
  return ids.slice(0, MOST);
}

/** Asks which ended jobs to hide, and hides them. */
export async function clearEnded({ at = null, lane = null, changed = () => {} } = {}) {
  if (!canAct()) return announce(whyNot(), { own: true });
  const counts = await get("counts", { lane });
  const sum = (which) => CHOICES[which].reduce((all, state) => all + counts[state], 0);
  let chosen = "done";
  const told = h("p", { role: "status" });
  const show = () => text(told, counts.capped ? words.hidesMany : words.hides(sum(chosen)));
  const radio = (which) => h("label", { class: "check" }, h("input", { type: "radio", name: "ended", value: which,
    checked: which === chosen, on: { change: () => { chosen = which; show(); } } }),
  `${words.choices[which]} (${sum(which).toLocaleString("en")})`);
  show();
  const which = h("fieldset", { class: "choices" }, h("legend", null, words.clearWhat), ...Object.keys(CHOICES).map(radio));
  const yes = await confirm({ title: words.clearTitle, lines: [which, told], verb: words.clearVerb, tone: "", at });
  if (!yes) return;
  try {
    const expect = counts.capped ? null : sum(chosen);
    const done = await act("POST", "clear", { states: CHOICES[chosen], lane, expect });
    toast(words.cleared(done.cleared), { undo: done.undo, at });
    changed();
  } catch (problem) {
    toast(problem.detail ?? String(problem), { at, tone: "bad" });
  }
}
