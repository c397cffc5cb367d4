// Single-key shortcuts for the row that has the focus, or the job whose screen is shown. Started by
// main.js. It must never act on a key meant for a field, a dialog or the browser, nor on one held down.

import { store } from "./api.js";
import * as controls from "./controls.js";
import { dialogs } from "./dialogs.js";
import { open as openHelp } from "./help.js";
import { pause, resume } from "./lanemenu.js";
import { live } from "./live.js";
import { settings } from "./phrases.js";
import { go, screenNow } from "./router.js";
import { toast, undo } from "./toast.js";

const SEQUENCE_MS = 1_500;
const PLACES = { n: "", h: "history", m: "metrics" };
const THEMES = ["auto", "light", "dark", "night"];
const FIELDS = "input, textarea, select, [contenteditable]";

const rows = () => [...document.querySelectorAll("#main [data-id]")].filter((node) => node.offsetParent);
const focused = () => document.activeElement?.closest?.("#main [data-id]");

function job() {
  const id = focused()?.dataset.id ?? screenNow()?.params?.id;
  return focused()?.row ?? screenNow()?.row?.() ?? live.row(id) ?? null;
}

function step(by) {
  const all = rows();
  const at = all.indexOf(focused());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  const link = next?.querySelector("a[href]");
  link?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// The first of these acts that this job allows now.
function ask(...kinds) {
  const row = job();
  const kind = row && kinds.find((each) => controls.allowed(each, row));
  if (kind) controls.ask(kind, row, { at: focused() });
}

function theme() {
  const next = THEMES[(THEMES.indexOf(store.get("theme", "auto")) + 1) % THEMES.length];
  store.set("theme", next);
  globalThis.lineclearTheme();
  toast(`${settings.theme}: ${settings.themes[next]}`);
}

async function search() {
  await go("history");
  document.querySelector("#main input[type=search]")?.focus();
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  p: () => ask("release", "hold"),
  "Shift+p": () => (live.state?.lanes.some((lane) => lane.pauses.length) ? resume(null) : pause(null, {})),
  s: () => ask("stop"),
  r: () => ask("retry"),
  x: () => ask("remove"),
  u: () => undo(),
  "[": () => ask("up"),
  "]": () => ask("down"),
  "{": () => ask("top"),
  "}": () => ask("bottom"),
  l: () => job() && go(`jobs/${job().id}/log`),
  "/": search,
  a: () => go("add"),
  t: theme,
  "?": openHelp,
};
const REPEATED = ["j", "k"];

let led = 0; // when "g" was pressed, the first of two

function named(event) {
  const letter = /^[a-z]$/i.test(event.key);
  if (!letter) return event.key;
  return `${event.shiftKey ? "Shift+" : ""}${event.key.toLowerCase()}`;
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
  if (store.get("keys", "on") === "off" || dialogs.current) return;
  if (event.composedPath()[0]?.closest?.(FIELDS)) return;
  const key = named(event);
  if (event.repeat && !REPEATED.includes(key)) return;
  const sequence = event.timeStamp - led < SEQUENCE_MS && led > 0;
  led = !sequence && key === "g" ? event.timeStamp : 0;
  const act = sequence && key in PLACES ? () => go(PLACES[key]) : (screenNow()?.keys?.[key] ?? KEYS[key]);
  if (!act) return;
  event.preventDefault();
  act();
}

export function start() {
  document.addEventListener("keydown", pressed);
}
