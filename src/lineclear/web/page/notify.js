// Web notifications while the page is open: the queue is idle, a job failed, a job does not respond.
// Started by main.js, switched by the Settings screen. It must never speak for each job that is done,
// nor about what was so before the page was opened.

import { store } from "./api.js";
import { plain } from "./prose.js";
import { notices } from "./phrases.js";

export const possible = () => "Notification" in globalThis && isSecureContext;
export const on = () => possible() && store.get("notify", "off") === "on" && Notification.permission === "granted";

/** turn("on"): asks the browser; answers whether they will come. */
export async function turn(to) {
  store.set("notify", to);
  if (to === "on" && possible()) await Notification.requestPermission();
  return on();
}

export function start(live) {
  const looks = new Map();
  let busy = null;
  const learn = () => {
    const state = live.state;
    if (!state) return;
    for (const row of [...state.running, ...state.ended]) looks.set(row.id, row.look);
    busy = state.running.length + state.waiting.length > 0;
  };
  const rows = ({ ids }) => {
    for (const id of ids) {
      const row = live.row(id);
      if (!row) continue;
      const before = looks.get(id);
      looks.set(id, row.look);
      if (before === row.look) continue;
      if (["failed", "lost"].includes(row.look)) say(notices.failed(row.title), row.error ?? row.detail, id);
      if (row.look === "silent") say(notices.silent(row.title), row.detail, id);
    }
    idle();
  };
  const idle = () => {
    const now = live.state.running.length + live.state.waiting.length > 0;
    if (busy && !now) say(notices.idle, live.state.sentence, "idle");
    busy = now;
  };
  live.addEventListener("snapshot", learn);
  live.addEventListener("rows", rows);
  live.addEventListener("order", idle);
  learn();
}

function say(title, body, tag) {
  if (on()) new Notification(title, { body: plain(body), tag: `lineclear-${tag}` });
}
