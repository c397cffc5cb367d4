// The History screen: jobs that ended, filtered by the address, a page at a time. Used by main.js for
// /history. Filters live in the address and nowhere else, so that Back and a link restore them.

import { get } from "../api.js";
import { h, visible } from "../dom.js";
import { endedActs } from "../endedacts.js";
import { FIELDS, filterForm, sentence } from "../filters.js";
import { historyList } from "../historylist.js";
import { history as words } from "../jobwords.js";
import { live } from "../live.js";
import { link, query as setQuery } from "../router.js";
import { lost } from "./lost.js";

const ENDED = ["done", "failed", "cancelled"];
const PAGE = 50;

export async function open(place, { query }) {
  const screen = new HistoryScreen(query);
  try {
    await screen.begin();
  } catch (problem) {
    return lost(place, problem);
  }
  place.append(screen.node);
  return { title: words.title, keys: { "/": () => screen.form.focus() }, close: () => screen.close() };
}

class HistoryScreen {
  #turn = 0;

  constructor(query) {
    this.filters = Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""]));
    this.before = query.get("before");
    this.results = h("div", { class: "history-results" });
    this.onRows = (event) => this.heard(event);
    for (const type of ["rows", "snapshot"]) live.addEventListener(type, this.onRows);
  }

  async begin() {
    const told = await get("tasks");
    const tasks = (told.tasks ?? told).map((task) => task.name);
    const lanes = (live.state?.lanes ?? []).map((lane) => lane.name);
    this.form = filterForm({ filters: this.filters, tasks, lanes, change: (next, how) => this.change(next, how) });
    this.node = h("section", { class: "history" }, h("h2", null, words.title), this.form.node, this.results);
    await this.load();
  }

  /** The reader's filters changed: the form stays as it is, with the focus where it was. */
  change(next, { push }) {
    Object.assign(this.filters, next);
    this.before = null;
    setQuery(pairs(this.filters), { push });
    this.load().catch((problem) => this.results.replaceChildren(h("p", { role: "alert" }, problem.detail)));
  }

  async load() {
    const turn = ++this.#turn;
    const { filters, before } = this;
    const asked = { state: filters.state, task: filters.kind, lane: filters.lane, since: filters.since, q: filters.q,
      hidden: filters.hidden ? 1 : null };
    const found = await page(asked, before);
    if (turn !== this.#turn) return;
    this.leave();
    const filtered = FIELDS.some((name) => filters[name]);
    this.opened = live.now();
    this.known = new Set(found.jobs.map((row) => row.id));
    this.list = historyList(found.jobs);
    this.acts = endedActs({ asked, filtered, changed: () => this.load() });
    this.news = h("button", { type: "button", class: "btn", hidden: true, on: { click: () => {
      this.before = null;
      setQuery(pairs(filters));
      this.load();
    } } }, h("span", null, words.news));
    const parts = [this.acts.node, this.news, found.jobs.length ? this.list.node : empty(filters, filtered, before),
      pager(filters, before, found.next)];
    this.results.replaceChildren(...parts.filter(Boolean));
  }

  heard({ ids }) {
    for (const id of ids ?? []) {
      const row = live.row(id);
      if (!row || !this.known) continue;
      if (this.known.has(id)) this.list.update(row);
      else if (!this.before && ENDED.includes(row.state) && row.ended_ms > this.opened) this.news.hidden = false;
    }
  }

  leave() {
    this.list?.close();
    this.acts?.close?.();
  }

  close() {
    for (const type of ["rows", "snapshot"]) live.removeEventListener(type, this.onRows);
    this.leave();
    this.form?.close();
  }
}

/** One page of ended jobs, the newest first. Without a state: of the three that end a job. */
async function page(asked, before) {
  const states = asked.state ? [asked.state] : ENDED;
  const parts = await Promise.all(states.map((state) => get("jobs", { ...asked, state, before, limit: PAGE })));
  const all = parts.flatMap((part) => part.jobs).sort((a, b) => b.id - a.id);
  const jobs = all.slice(0, PAGE);
  const more = all.length > PAGE || parts.some((part) => part.next);
  return { jobs, next: more ? String(jobs.at(-1).id) : null };
}

const pairs = (filters, before = "") =>
  Object.fromEntries(Object.entries({ ...filters, before }).filter(([, value]) => value));

const address = (...more) => link(`history?${new URLSearchParams(pairs(...more))}`);

function empty(filters, filtered, before) {
  const said = (text, ...more) => h("div", { class: "empty" }, h("p", null, text), ...more);
  if (!filtered) return said(before ? words.noOlder : words.nothing);
  return said(words.none(visible(sentence(filters))), h("p", null, h("a", { class: "btn", href: link("history") }, h("span", null, words.clear))));
}

function pager(filters, before, next) {
  if (!before && !next) return null;
  return h("nav", { class: "pager", "aria-label": words.pages },
    before && h("a", { class: "btn", href: address(filters) }, h("span", null, words.newest)),
    h("span", { "aria-current": "page" }, before ? words.older : words.newestHere),
    next && h("a", { class: "btn", rel: "next", href: address(filters, next) }, h("span", null, words.earlier)));
}
