// The filters of the History screen: which state, task, lane, since when, which words. Used by
// screens/history.js. A change of one goes into the address; typing is taken when it pauses.

import { h } from "./dom.js";
import { history as words } from "./jobwords.js";

export const FIELDS = ["state", "kind", "lane", "since", "q", "hidden"];
const TYPED_MS = 400;

/** `failed, audiobook, last 7 days` */
export function sentence(filters) {
  const { state, kind, lane, since, q, hidden } = filters;
  return [
    state && (words.states[state] ?? state).toLowerCase(), kind, lane && `${words.lane.toLowerCase()} ${lane}`,
    since && (words.spans[since] ?? since).toLowerCase(), q && `“${q}”`, hidden && words.hidden.toLowerCase(),
  ].filter(Boolean).join(", ");
}

/** change(filters, {push}): the reader wants these; typing makes no new entry for Back. */
export function filterForm({ filters, tasks, lanes, change }) {
  let timer = 0;
  const now = () => Object.fromEntries(FIELDS.map((name) => {
    const field = form.elements.namedItem(name);
    return [name, field.type === "checkbox" ? (field.checked ? "1" : "") : field.value.trim()];
  }));
  const take = (push = true) => {
    clearTimeout(timer);
    const next = now();
    if (FIELDS.some((name) => next[name] !== filters[name])) change(next, { push });
  };
  const choice = (name, label, all, options) => {
    const known = options.some(([value]) => value === filters[name]) || !filters[name] ? options
      : [...options, [filters[name], filters[name]]];
    const select = h("select", { name, on: { change: () => take() } }, h("option", { value: "" }, all),
      ...known.map(([value, text]) => h("option", { value, selected: value === filters[name] }, text)));
    return h("label", null, label, select);
  };
  const search = h("input", { type: "search", name: "q", value: filters.q, autocomplete: "off", spellcheck: "false",
    maxlength: 200, on: { input: () => {
      clearTimeout(timer);
      timer = setTimeout(() => take(false), TYPED_MS);
    } } });
  const form = h("form", { class: "filters", role: "search", "aria-label": words.filters, on: {
    submit: (event) => { event.preventDefault(); take(); },
  } },
    choice("state", words.state, words.anyState, Object.entries(words.states)),
    choice("kind", words.kind, words.any, tasks.map((name) => [name, name])),
    choice("lane", words.lane, words.any, lanes.map((name) => [name, name])),
    choice("since", words.since, words.ever, Object.entries(words.spans)),
    h("label", { class: "search" }, words.search, search),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "hidden", checked: Boolean(filters.hidden),
      on: { change: () => take() } }), words.hidden));
  return {
    node: form,
    focus: () => search.focus(),
    close: () => clearTimeout(timer),
  };
}
