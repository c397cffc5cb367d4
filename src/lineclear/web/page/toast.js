// Short answers to what somebody did, with Undo, and what a screen reader is told. Used by every
// module that acts. It must never take the focus, nor say more than one change of state in 5 s.

import { act } from "./api.js";
import { h } from "./dom.js";
import { plain } from "./prose.js";
import { words } from "./words.js";

const UNDO_MS = 15_000;
const PLAIN_MS = 6_000;
const QUIET_MS = 5_000;
const hosts = [];
let saidAt = -QUIET_MS;
let next = null;
let later = 0;

/** The places of one page or panel: made once in `parent`. */
export function mount(parent) {
  const host = {
    parent,
    box: h("div", { class: "toasts" }),
    status: h("p", { class: "unseen", role: "status" }),
    alert: h("p", { class: "unseen", role: "alert" }),
  };
  parent.append(host.box, host.status, host.alert);
  hosts.push(host);
  return () => hosts.splice(hosts.indexOf(host), 1);
}

const hostOf = (at) => hosts.find((host) => at && host.parent.contains(at)) ?? hosts[0];

/** Shown for a while; `undo` is the number of the act, `action` another {label, on}. */
export function toast(said, { undo: number = null, action = null, at = null, tone = "" } = {}) {
  const host = hostOf(at);
  if (!host) return;
  const button = number !== null && number !== undefined ? { label: words.undo, on: () => undo(number, at) } : action;
  const gone = () => node.isConnected && node.remove();
  const node = h("div", { class: "toast", dataset: { tone } }, h("span", null, plain(said)));
  if (button) {
    const press = () => {
      gone();
      button.on();
    };
    node.append(h("button", { type: "button", class: "btn", on: { click: press } }, h("span", null, button.label)));
  }
  host.box.replaceChildren(node);
  setTimeout(gone, button ? UNDO_MS : PLAIN_MS);
  announce(said, { own: true });
}

/** Undoes that act and no other; without a number the last one. */
export async function undo(number = null, at = null) {
  try {
    const done = await act("POST", "undo", { undo: number });
    toast(done.sentence, { at });
  } catch (problem) {
    toast(problem.detail ?? String(problem), { at, tone: "bad" });
  }
}

/** Told politely: answers to one's own acts at once, changes of state at most one in 5 s. */
export function announce(said, { own = false } = {}) {
  const now = performance.now();
  if (!own && now - saidAt < QUIET_MS) {
    next = said;
    clearTimeout(later);
    later = setTimeout(() => next && announce(next), QUIET_MS - (now - saidAt));
    return;
  }
  saidAt = now;
  next = null;
  for (const host of hosts) host.status.textContent = plain(said);
}

/** Told at once: only Connection lost and Not responding. */
export function alert(said) {
  for (const host of hosts) host.alert.textContent = plain(said);
}
