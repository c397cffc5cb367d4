// The list of shortcuts, in a dialog and on the Settings screen.
// Used by keys.js and screens/settings.js. It must never list a key that does nothing.

import { sheet } from "./dialogs.js";
import { h } from "./dom.js";
import { help as words } from "./phrases.js";

/** The shortcuts, in groups. */
export function list() {
  return h("div", { class: "shortcuts" }, ...words.groups.map(([title, keys]) =>
    h("section", null, h("h3", null, title), h("dl", null, ...keys.map(([names, does]) =>
      h("div", null, h("dt", null, ...names.map((name) => h("kbd", null, name))), h("dd", null, does)))))));
}

export function open() {
  const { dialog } = sheet(words.title, [], { body: [list(), h("p", { class: "hint" }, words.armed)] });
  dialog.classList.add("help");
  dialog.lastElementChild.firstChild.textContent = words.close;
}
