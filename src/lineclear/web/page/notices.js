// What stands under the header: connection lost, signed out, shown elsewhere, warnings. Used by
// main.js and the panel. What it says while the connection is lost must say of when it is.

import { plainButton } from "./controls.js";
import { h, set, text } from "./dom.js";
import { live } from "./live.js";
import { clock, moment } from "./prose.js";
import { link } from "./router.js";
import { alert, announce } from "./toast.js";
import { words } from "./words.js";

const TROUBLE = ["lost", "starting", "signed-out", "elsewhere", "polling"];

/** Puts itself into `place` and marks `surface` with the connection's state. */
export function notices(place, surface, { signal } = {}) {
  const told = h("span");
  const counting = h("span", { "aria-hidden": "true" });
  const act = plainButton(words.tryNow, () => act.go?.(), { cls: "lead" });
  const away = h("a", { class: "btn", href: link("login") }, h("span", null, words.signIn));
  const banner = h("div", { class: "notice connection", hidden: true }, h("p", null, told, " ", counting), act, away);
  const warned = h("div", { class: "notice warnings", hidden: true });
  place.append(banner, warned);
  let was = "";

  function connection() {
    const { status } = live;
    set(surface, "data-live", status);
    const silent = ["idle", "connecting", "live"].includes(status);
    banner.hidden = silent;
    act.hidden = !["lost", "starting", "elsewhere"].includes(status);
    away.hidden = status !== "signed-out";
    act.go = () => live.tryNow();
    text(act.firstChild, status === "elsewhere" ? words.useHere : words.tryNow);
    if (status === "lost" && live.asOf) told.replaceChildren(words.lost, moment(live.asOf, { seconds: true }), words.lostThen);
    else text(told, { lost: words.noServer, starting: words.starting, "signed-out": words.signedOut, elsewhere: words.elsewhere, polling: words.polling }[status]);
    if (status === "lost" && was !== "lost") alert(live.asOf ? words.lost + clock(live.asOf, { seconds: true }) + words.lostThen : words.noServer);
    if (status === "live" && TROUBLE.includes(was)) {
      alert("");
      announce(words.back, { own: true });
    }
    was = status === "connecting" ? was : status;
    count();
  }

  function count() {
    const waits = ["lost", "starting"].includes(live.status);
    const s = Math.ceil((live.retryAt - Date.now()) / 1000);
    text(counting, waits ? (s > 0 ? words.tryingIn(s) : words.trying) : "");
  }

  function queue() {
    if (!live.state) return;
    const warnings = live.state.warnings ?? [];
    warned.hidden = warnings.length === 0;
    if (warned.textContent !== warnings.join("")) warned.replaceChildren(...warnings.map((line) => h("p", null, line)));
  }

  live.addEventListener("status", connection, { signal });
  for (const type of ["snapshot", "queue"]) live.addEventListener(type, queue, { signal });
  const timer = setInterval(() => !banner.hidden && count(), 1_000);
  signal?.addEventListener("abort", () => clearInterval(timer));
  connection();
  queue();
}
