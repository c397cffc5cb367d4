// The tools above a log: find, times, wrap, copy, download, reading new lines aloud. Used by
// logview.js. It changes only how the lines look; it never loads or drops any.

import { store } from "./api.js";
import { h } from "./dom.js";
import { link as below } from "./router.js";
import { announce, toast } from "./toast.js";

const narrow = () => matchMedia("(max-width: 700px)").matches;

/** view: {pane, lines, job, attempt()}. Answers {node, keys, changed()}. */
export function logTools(view) {
  let matches = [];
  let at = -1;
  const words = h("input", { type: "search", class: "log-find", placeholder: "Find",
    "aria-label": "Find in the lines shown", autocomplete: "off", spellcheck: "false" });
  const found = h("span", { class: "log-found", role: "status" });
  const previous = step("↑", "Previous match", -1);
  const next = step("↓", "Next match", 1);

  function step(text, name, by) {
    return h("button", { type: "button", class: "btn small", "aria-label": name, hidden: true,
      on: { click: () => go(by) } }, h("span", null, text));
  }

  function search() {
    for (const line of matches) line.node.classList.remove("log-match", "log-current");
    matches = view.lines.matching(words.value.trim());
    for (const line of matches) line.node.classList.add("log-match");
    at = Math.min(at, matches.length - 1);
    tell();
  }

  function tell() {
    const asked = words.value.trim();
    const many = matches.length;
    found.textContent = !asked ? "" : !many ? `Not in the ${view.lines.lines.length} lines shown`
      : `${at < 0 ? "" : `${at + 1} of `}${many} ${many === 1 && at < 0 ? "line" : at < 0 ? "lines" : ""}`.trim();
    previous.hidden = next.hidden = many === 0;
  }

  function go(by) {
    if (!matches.length) return;
    matches[at]?.node.classList.remove("log-current");
    // The newest match first: a log is read from its end.
    at = at < 0 ? matches.length - 1 : (at + by + matches.length) % matches.length;
    matches[at].node.classList.add("log-current");
    matches[at].node.scrollIntoView({ block: "center" });
    tell();
  }

  words.addEventListener("input", () => { at = -1; search(); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && words.value) {
      event.stopPropagation();
      words.value = "";
      at = -1;
      search();
    }
  });

  const times = flip("Times", "times", "off", (on) => view.pane.classList.toggle("with-times", on));
  const wrap = flip("Wrap", "wrap", narrow() ? "on" : "off", (on) => view.pane.classList.toggle("wrapped", on));
  const aloud = flip("Read new lines", null, "off", (on) =>
    view.pane.setAttribute("aria-live", on ? "polite" : "off"));

  async function copy() {
    const text = view.lines.text();
    const count = view.lines.lines.length;
    const done = await copied(text);
    if (done) toast(`Copied ${count.toLocaleString("en")} lines.`);
    else announce("The browser does not let a page copy here. Select the lines instead.");
  }

  const download = h("a", { class: "btn small", download: "" }, h("span", null, "Download"));
  const link = () => {
    const which = view.attempt();
    download.href = below(`jobs/${view.job}/log.txt${which === null ? "" : `?try=${which}`}`);
  };
  link();

  const node = h("div", { class: "log-tools", role: "group", "aria-label": "Log tools" },
    h("span", { class: "log-finder" }, words, previous, next, found), times, wrap,
    h("button", { type: "button", class: "btn small", on: { click: copy } }, h("span", null, "Copy")), download, aloud);
  return {
    node,
    keys: { "/": () => words.focus() },
    changed() {
      link();
      if (words.value.trim()) search();
    },
  };
}

function flip(text, name, otherwise, act) {
  let on = (name ? store.get(`log.${name}`, otherwise) : otherwise) === "on";
  const button = h("button", { type: "button", class: "btn small", "aria-pressed": String(on),
    on: { click: () => { on = !on; if (name) store.set(`log.${name}`, on ? "on" : "off"); show(); } } }, h("span", null, text));
  const show = () => {
    button.setAttribute("aria-pressed", String(on));
    act(on);
  };
  show();
  return button;
}

/** Put text on the clipboard, also where the page came over plain HTTP. Says whether it is there. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "out-of-sight", readonly: true, "aria-hidden": "true" });
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus?.();
    return done;
  }
}
