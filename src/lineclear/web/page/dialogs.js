// Sheets, menus and questions: each a <dialog>, at the bottom on phones, by its button on a desk.
// Used by rows, lanes and screens. Back closes one before it leaves the screen; none opens by itself.

import { h, order } from "./dom.js";
import { go } from "./router.js";
import { words } from "./words.js";

const GAP = 4;
const WIDE = matchMedia("(min-width: 44em)");

/** `back`: whether the browser's Back closes a sheet; not in a page of somebody else. */
export const dialogs = { back: false, current: null };
let leaving = 0;

addEventListener("popstate", () => {
  if (dialogs.current && !history.state?.sheet) dialogs.current.close();
});

function place(dialog, at) {
  if (!at || !WIDE.matches) return;
  dialog.classList.add("anchored");
  const spot = at.getBoundingClientRect();
  const own = dialog.getBoundingClientRect();
  const below = spot.bottom + GAP + own.height <= innerHeight;
  const top = below ? spot.bottom + GAP : Math.max(GAP, spot.top - GAP - own.height);
  const left = Math.max(GAP, Math.min(spot.right - own.width, innerWidth - own.width - GAP));
  Object.assign(dialog.style, { top: `${top}px`, left: `${left}px` });
}

function show(dialog, at, menu) {
  dialogs.current?.close();
  const parent = at?.getRootNode().querySelector?.(".lc") ?? document.body;
  let closed = false;
  const pushed = dialogs.back;
  const close = (to = null) => {
    if (closed) return;
    closed = true;
    dialogs.current = null;
    dialog.close();
    dialog.remove();
    if (to) go(to);
    // Later, because another sheet or screen may take the entry over at once.
    else if (pushed) leaving = setTimeout(() => history.state?.sheet && history.back());
    dialog.dispatchEvent(new Event("gone"));
    order.dispatchEvent(new Event("thaw"));
  };
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  dialog.addEventListener("close", () => close());
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  parent.append(dialog);
  dialog.showModal();
  if (menu) place(dialog, at);
  clearTimeout(leaving);
  if (pushed && !history.state?.sheet) history.pushState({ ...history.state, sheet: true }, "");
  dialogs.current = { close };
  return close;
}

/**
 * A list of things to do. An item is a node, or {label, on, tone, href, current, hint}.
 * Answers {close, update(items), note}: `note` is a line for what an armed button says.
 */
export function sheet(title, items, { at = null, body = [] } = {}) {
  const note = h("p", { class: "sheet-note", hidden: true });
  const rest = h("div", { class: "sheet-items" });
  const cancel = h("button", { type: "button", class: "btn quiet", on: { click: () => close() } }, h("span", null, words.cancel));
  const dialog = h("dialog", { class: "sheet", "aria-label": title }, h("h2", null, title), ...body, note, rest, cancel);
  const made = (item) => {
    if (item instanceof Node) return item;
    const pick = (event) => {
      event.preventDefault();
      close(item.href ?? null);
      item.on?.();
    };
    const inner = [h("span", null, item.label), item.hint && h("small", null, item.hint)];
    const more = { "aria-current": item.current ? "true" : null, dataset: { tone: item.tone ?? "" }, on: { click: pick } };
    if (item.href) return h("a", { class: "btn", href: item.href, ...more }, ...inner);
    return h("button", { type: "button", class: "btn", ...more }, ...inner);
  };
  const update = (next) => rest.replaceChildren(...next.filter(Boolean).map(made));
  update(items);
  const close = show(dialog, at, true);
  return { close, update, note, dialog };
}

/**
 * A question with a verb (a function where it depends on what is chosen); the focus is on Cancel.
 * Resolves to what `answer()` says, or null.
 */
export function confirm({ title, lines = [], verb, tone = "bad", at = null, answer = () => true }) {
  return new Promise((resolve) => {
    let said = null;
    const cancel = h("button", { type: "button", class: "btn", autofocus: true, on: { click: () => close() } }, h("span", null, words.cancel));
    const yes = () => {
      said = answer();
      close();
    };
    const button = h("button", { type: "button", class: "btn", dataset: { tone }, on: { click: yes } }, h("span"));
    const worded = () => (button.firstChild.textContent = typeof verb === "function" ? verb() : verb);
    worded();
    const told = lines.map((line) => (line instanceof Node ? line : h("p", null, line)));
    const dialog = h("dialog", { class: "sheet question", "aria-label": title }, h("h2", null, title), ...told, h("div", { class: "question-acts" }, button, cancel));
    dialog.addEventListener("change", worded);
    dialog.addEventListener("gone", () => resolve(said));
    const close = show(dialog, at, false);
    cancel.focus();
  });
}
