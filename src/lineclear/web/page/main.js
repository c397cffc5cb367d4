// Starts the page: header, sections, notices, screens. Loaded by index.html, and by nothing else.
// It must never decide what a screen shows; it only says what is so for all of them.

import { get } from "./api.js";
import { mayAct } from "./controls.js";
import { dialogs } from "./dialogs.js";
import { h, order, set } from "./dom.js";
import * as keys from "./keys.js";
import { laneActs } from "./lanes.js";
import { live } from "./live.js";
import { notices } from "./notices.js";
import * as notify from "./notify.js";
import { plain, reader, tell } from "./prose.js";
import { router, screen, screenNow, start } from "./router.js";
import { alert, announce, mount } from "./toast.js";
import { words } from "./words.js";

const NAME = "Line Clear";
const LONG = 56; // characters that stand beside the controls on a phone
const at = (id) => document.getElementById(id);

screen("/", () => import("./screens/now.js"));
screen("/jobs/{id}", () => import("./screens/job.js"));
screen("/jobs/{id}/log", () => import("./screens/log.js"));
screen("/history", () => import("./screens/history.js"));
screen("/metrics", () => import("./screens/metrics.js"));
screen("/add", () => import("./screens/add.js"));
screen("/settings", () => import("./screens/settings.js"));
screen("/login", () => import("./screens/login.js"));

const sentence = at("sentence");
const acts = laneActs(null);
const role = h("p", { class: "role", hidden: true, title: words.viewOnlyWhy }, words.viewOnly);
at("controls").append(role, acts);
acts.hidden = true;

function header() {
  const { state } = live;
  if (!state && live.status === "signed-out") tell(sentence, words.signedOut);
  if (!state) return;
  const lost = ["lost", "starting", "signed-out", "elsewhere"].includes(live.status);
  tell(sentence, lost ? `${state.sentence}, ${words.asOf}\u0002${Math.floor(live.asOf)}\u0003` : state.sentence);
  set(at("header"), "data-tone", state.unserved ? "bad" : state.tone);
  set(at("header"), "data-long", plain(state.sentence).length > LONG ? "1" : null);
  set(at("header"), "data-unserved", state.unserved ? "1" : null);
  role.hidden = mayAct();
  acts.update(state.lanes);
  title();
}

/** The page's title carries the queue: "42 % · 5 waiting". */
function title() {
  const { state } = live;
  const parts = [];
  const first = state?.running.find((row) => row.percent !== null);
  const waiting = state?.lanes.reduce((sum, lane) => sum + lane.waiting, 0);
  if (first) parts.push(`${first.percent} %`);
  else if (state?.running.length) parts.push(`${state.running.length} running`);
  if (waiting) parts.push(`${waiting} waiting`);
  const told = [parts.join(" · "), plain(screenNow()?.title ?? ""), NAME].filter(Boolean).join(" – ");
  if (document.title !== told) document.title = told;
}

function current() {
  const path = new URL(location.href).pathname;
  for (const a of at("nav").querySelectorAll("a")) {
    const own = new URL(a.href).pathname;
    set(a, "aria-current", own === path ? "page" : null);
  }
  title();
}

/** Changes of state are spoken, numbers are not. */
const looks = new Map();
function speak({ ids }) {
  for (const id of ids) {
    const row = live.row(id);
    const before = looks.get(id);
    if (!row) continue;
    looks.set(id, row.look);
    if (before === undefined || before === row.look) continue;
    const told = `${row.title}: ${row.word}. ${live.state.sentence}`;
    if (row.look === "silent") alert(`${row.title}: ${row.word}.`);
    else announce(told);
  }
}
function learn() {
  for (const row of [...live.state.running, ...live.state.waiting, ...live.state.ended]) looks.set(row.id, row.look);
}

/** The server has other files than this page was made of: load them, once, in a quiet moment. */
let outdated = null;
function reload() {
  const typing = document.activeElement?.matches("input, textarea, select");
  if (!outdated || dialogs.current || order.frozen() || typing) return;
  try {
    if (sessionStorage.getItem("lineclear.reloaded") === outdated) return;
    sessionStorage.setItem("lineclear.reloaded", outdated);
  } catch {
    return; // without a memory it could go on for ever
  }
  location.reload();
}

/** "Order changed · Show": over the page, so that it moves nothing itself. */
const strip = h("button", { type: "button", class: "strip", hidden: true, on: { click: () => order.dispatchEvent(new Event("mine")) } }, words.orderChanged);
document.body.append(strip);
order.addEventListener("held", () => (strip.hidden = order.held.size === 0));

mount(document.body);
dialogs.back = true;
notices(at("notices"), document.body);
for (const type of ["snapshot", "queue", "rows", "status"]) live.addEventListener(type, header);
live.addEventListener("snapshot", learn);
live.addEventListener("rows", speak);
live.addEventListener("hello", ({ changed }) => {
  outdated = changed ? "yes" : null;
  header();
});
live.addEventListener("tick", reload);
router.addEventListener("screen", current);

const night = () => document.documentElement.dataset.theme === "night";
addEventListener("theme", () => live.slow(night()));
live.start({ slow: night() });

async function begin() {
  try {
    live.me = await get("me");
    reader.name = live.me.name;
  } catch (problem) {
    if (problem.status === 401 && !location.pathname.endsWith("/login")) return signIn();
  }
  header();
  for (const each of [keys, notify]) each.start(live);
  await start(() => ({ live, me: live.me }));
}

async function signIn() {
  const { open } = await import("./screens/login.js");
  await open(at("main"), { params: {}, query: new URLSearchParams(location.search), live, me: null });
}

begin();
