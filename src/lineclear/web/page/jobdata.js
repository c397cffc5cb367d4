// Arguments, results and the whole job as text. Used by the Job screen. What a job holds is shown as
// text and nothing else: an address in it is no link.

import { h, text } from "./dom.js";
import { copied } from "./logtools.js";
import { announce, toast } from "./toast.js";
import { number } from "./words.js";

const SHOWN = 10_000;
const MORE = 50_000;
const UNREADABLE = "cannot be shown";

const unreadable = (value) =>
  value !== null && typeof value === "object" && UNREADABLE in value && Object.keys(value).length === 1;

/** Indented JSON; the raw text of what cannot be decoded. */
export const written = (value) =>
  unreadable(value) ? String(value[UNREADABLE] ?? "") : JSON.stringify(value, null, 2);

/** A value as text, cut while it is long, with Copy. what: "arguments". */
export function dataBlock(value, what) {
  const whole = written(value) ?? "null";
  const box = h("pre", { class: "data", tabindex: "0", role: "group", "aria-label": what });
  let shown = 0;
  const add = (size) => {
    box.append(h("div", null, whole.slice(shown, shown + size)));
    shown = Math.min(whole.length, shown + size);
  };
  add(SHOWN);
  // In parts: a browser takes many seconds to break one line of a million characters.
  const label = () => `Show ${number(Math.min(MORE, whole.length - shown))} more of ${number(whole.length)} characters`;
  const more = shown < whole.length && h("button", { type: "button", class: "btn small", on: { click: () => {
    add(MORE);
    if (shown < whole.length) text(more.firstChild, label());
    else more.remove();
  } } }, h("span", null, label()));
  const copy = h("button", { type: "button", class: "btn small", on: { click: async () => {
    if (await copied(whole)) toast(`Copied the ${what}.`);
    else announce("The browser does not let a page copy here. Select the text instead.");
  } } }, h("span", null, "Copy"));
  return h("div", { class: "data-block" },
    unreadable(value) && h("p", { class: "warn" }, `The ${what} cannot be decoded. This is their raw text.`),
    box, h("p", { class: "data-acts" }, copy, more));
}

/** The whole job as JSON, made when it is opened. */
export function rawBlock(job) {
  const details = h("details", { class: "raw" }, h("summary", null, "Raw JSON"));
  details.addEventListener("toggle", () => {
    details.querySelector(".data-block")?.remove();
    if (details.open) details.append(dataBlock(job(), "raw JSON"));
  });
  return details;
}
