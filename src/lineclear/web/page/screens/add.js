// The Add screen: which task, its arguments, when and where; says before what adding would do.
// Opened by the router. It must never lose what was typed (kept in this tab's session until it is
// added), nor add one filled form twice.

import { act, get, root as mount, unique } from "../api.js";
import { whyNot } from "../controls.js";
import { h, set } from "../dom.js";
import { form, moment } from "../form.js";
import { add as words } from "../phrases.js";
import { tell } from "../prose.js";
import { go, link, query as setQuery } from "../router.js";
import { toast } from "../toast.js";

const KEPT = `lineclear.add ${mount}`;
const PAUSE_MS = 350; // between the last key and asking what adding would do
const DOUBLE_MS = 1_000; // a press this soon after a job was added belongs to the one before

export async function open(root, { query, live }) {
  const heading = h("h2", null, words.title);
  root.append(heading);
  let tasks;
  let again = null;
  try {
    tasks = await get("tasks");
    if (query.get("again")) again = await get(`jobs/${Number(query.get("again"))}`);
  } catch (problem) {
    root.append(h("p", { class: "wrong" }, problem.detail));
    if (problem.status !== 404 || !tasks) return { title: words.title };
  }
  if (!tasks.length) {
    root.append(h("p", null, words.noTasks), h("pre", { class: "code" }, words.noTasksShell));
    return { title: words.title };
  }
  const screen = new Adding(root, tasks, live);
  screen.begin(query, again);
  return { title: words.title, close: () => screen.close() };
}

class Adding {
  #timer = 0;
  #asked = 0;
  #busy = false;
  #addedAt = -DOUBLE_MS;

  constructor(root, tasks, live) {
    this.tasks = new Map(tasks.map((task) => [task.name, task]));
    this.live = live;
    this.kept = remembered();
    this.fields = h("div");
    this.options = options(live);
    this.estimate = h("p", { class: "estimate", "aria-live": "polite" });
    this.wrong = h("p", { class: "wrong", role: "alert" });
    this.result = h("p", { class: "result" });
    this.button = h("button", { class: "btn primary", type: "submit" }, h("span", null, words.verb));
    this.form = h("form", { class: "adding", on: {
      submit: (event) => { event.preventDefault(); this.submit(); },
      input: () => this.changed(),
      change: () => this.changed(),
    } }, this.chooser(), this.fields, this.options.element, this.estimate, this.wrong,
      this.result, h("div", { class: "form-acts" }, this.button));
    root.append(this.form);
    this.watch = () => this.allow();
    live.addEventListener("status", this.watch);
    this.allow();
  }

  chooser() {
    const names = [...this.tasks.keys()];
    const pick = (name) => (event) => { event.stopPropagation(); this.choose(name); };
    if (names.length <= 6) {
      return h("fieldset", { class: "tasks" }, h("legend", null, words.task), ...names.map((name) => {
        const { doc, usual, lane } = this.tasks.get(name);
        const about = h("span", { class: "hint" });
        tell(about, [firstLine(doc), usual, words.inLane(lane)].filter(Boolean).join(" · "));
        const radio = h("input", { type: "radio", name: "task", value: name, on: { change: pick(name), input: pick(name) } });
        return h("label", { class: "task" }, radio, h("span", null, h("strong", null, name), about));
      }));
    }
    const select = h("select", { id: "task", name: "task" }, ...names.map((name) => h("option", { value: name }, name)));
    select.addEventListener("input", (event) => pick(select.value)(event));
    this.about = h("p", { class: "hint" });
    return h("div", { class: "field" }, h("label", { for: "task" }, words.task), select, this.about);
  }

  begin(query, again) {
    const name = [again?.task, query.get("task"), this.kept.task].find((each) => this.tasks.has(each));
    if (again && !this.tasks.has(again.task)) this.wrong.textContent = words.taskGone(again.task);
    if (again && this.kept.again !== again.id) {
      this.kept = { ...this.kept, again: again.id };
      this.kept.forms = { ...this.kept.forms, [again.task]: undefined };
    }
    this.again = again;
    this.choose(name ?? this.tasks.keys().next().value);
  }

  choose(name) {
    this.task = this.tasks.get(name);
    const chosen = this.form.querySelector("[name=task]:not([type=radio])");
    if (chosen) chosen.value = name;
    for (const radio of this.form.querySelectorAll("input[name=task]")) radio.checked = radio.value === name;
    if (this.about) tell(this.about, [firstLine(this.task.doc), this.task.usual].filter(Boolean).join(" · "));
    const mine = this.kept.forms?.[name] ?? {};
    const same = this.again?.task === name;
    this.filled = form(this.task.schema, { texts: mine.texts, values: same ? this.again.args : {} });
    this.fields.replaceChildren(this.filled.element);
    const lane = same && this.again.lane !== this.task.lane ? this.again.lane : "";
    this.options.fill({ lane, ...mine.options }, this.task);
    this.key = mine.key ?? unique();
    this.kept.task = name;
    this.ask();
  }

  // Another content is another job to add: it gets a key of its own.
  changed() {
    this.key = unique();
    this.wrong.textContent = "";
    this.result.replaceChildren();
    this.keep();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.ask(), PAUSE_MS);
  }

  keep() {
    const mine = { texts: this.filled.texts(), options: this.options.texts(), key: this.key };
    this.kept.forms = { ...this.kept.forms, [this.task.name]: mine };
    remember(this.kept);
  }

  asked() {
    return { task: this.task.name, args: this.filled.read(), ...this.options.read() };
  }

  async ask() {
    const turn = ++this.#asked;
    if (!this.form.matches(":valid")) return tell(this.estimate, words.incomplete);
    try {
      const told = await act("POST", "jobs", { ...this.asked(), dry_run: true });
      if (turn !== this.#asked) return;
      tell(this.estimate, [place(told), told.starts, told.takes].filter(Boolean).join(" · "));
    } catch (problem) {
      if (turn !== this.#asked) return;
      // What does not fit is said where it is when it is added, not while it is being typed.
      tell(this.estimate, problem.status === 422 ? words.incomplete : "");
    }
  }

  allow() {
    this.reason = whyNot();
    set(this.button, "aria-disabled", this.reason ? "true" : null);
    set(this.button, "title", this.reason);
  }

  async submit() {
    if (this.#busy || performance.now() - this.#addedAt < DOUBLE_MS) return;
    if (this.reason) return void (this.wrong.textContent = `${this.reason} ${words.kept}`);
    this.#busy = true;
    this.wrong.textContent = "";
    this.button.firstChild.textContent = words.adding;
    try {
      const told = await act("POST", "jobs", this.asked(), { key: this.key });
      this.added(told);
    } catch (problem) {
      this.refused(problem);
    } finally {
      this.#busy = false;
      this.button.firstChild.textContent = words.verb;
    }
  }

  added({ job, new: fresh, place: at }) {
    this.#addedAt = performance.now();
    const told = fresh ? words.added(at) : words.there(job.title, at);
    toast(told, { action: { label: words.open, on: () => go(`jobs/${job.id}`) } });
    this.kept.forms = { ...this.kept.forms, [this.task.name]: undefined };
    this.kept.again = undefined;
    remember(this.kept);
    this.again = null;
    setQuery({});
    this.choose(this.task.name);
    this.result.replaceChildren(told, " · ", h("a", { href: link(`jobs/${job.id}`) }, words.open), " · ",
      h("a", { href: link(`add?again=${job.id}`) }, words.again));
  }

  refused(problem) {
    const { field, detail, status } = problem;
    const mine = status === 404 ? this.options : this.filled;
    const other = mine === this.filled ? this.options : this.filled;
    if (field && (mine.blame(field, detail) || other.blame(field, detail))) return;
    this.wrong.textContent = status === 0 ? `${detail} ${words.kept}` : detail;
  }

  close() {
    clearTimeout(this.#timer);
    this.#asked += 1;
    this.live.removeEventListener("status", this.watch);
  }
}

const place = ({ place: at }) => (at ? words.place(at) : "");
const firstLine = (doc) => (doc ?? "").trim().split("\n")[0];

function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

function remember(kept) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
  } catch {
    return; // no room: what stands in the fields is all there is
  }
}

// Where and when: lane, place, not before, paused, title.
function options(live) {
  const lane = h("input", { id: "lane", name: "lane", list: "lanes", autocomplete: "off", maxlength: 64 });
  const lanes = h("datalist", { id: "lanes" },
    ...(live.state?.lanes ?? []).map((each) => h("option", { value: each.name })));
  const title = h("input", { id: "title", name: "title", autocomplete: "off" });
  const before = h("input", { id: "not_before", name: "not_before", type: "datetime-local" });
  const paused = h("input", { id: "paused", name: "paused", type: "checkbox" });
  const radio = (value) => h("input", { type: "radio", name: "position", value, id: `position-${value}` });
  const [last, first] = [radio("last"), radio("first")];
  const wrongs = new Map();
  const field = (control, label, hint) => {
    const wrong = h("p", { class: "wrong", id: `${control.id}-wrong` });
    control.setAttribute("aria-describedby", `${control.id}-hint ${wrong.id}`);
    wrongs.set(control.id, { wrong, control });
    const about = h("p", { class: "hint", id: `${control.id}-hint` }, hint);
    const element = h("div", { class: "field", dataset: { field: control.id } },
      h("label", { for: control.id }, label), about, control, wrong);
    element.addEventListener("input", () => blame(control.id, ""));
    return element;
  };
  const blame = (name, sentence) => {
    const found = wrongs.get(name);
    if (!found) return false;
    found.wrong.textContent = sentence;
    if (sentence) found.control.setAttribute("aria-invalid", "true");
    else found.control.removeAttribute("aria-invalid");
    if (sentence) found.control.focus();
    return true;
  };
  const element = h("fieldset", { class: "options" },
    h("legend", null, words.when),
    h("div", { class: "fields" },
      h("fieldset", { class: "field position" }, h("legend", null, words.position),
        h("label", { class: "choice" }, last, words.last), h("label", { class: "choice" }, first, words.first)),
      field(before, words.notBefore, words.notBeforeHint),
      h("div", { class: "field" }, h("label", { class: "choice" }, paused, words.paused)),
      field(lane, words.lane, words.laneHint), lanes,
      field(title, words.jobTitle, words.jobTitleHint)));
  return {
    element,
    blame,
    fill(kept, task) {
      lane.value = kept.lane ?? "";
      lane.placeholder = task.lane;
      title.value = kept.title ?? "";
      before.value = kept.before ?? "";
      paused.checked = kept.paused ?? false;
      (kept.first ? first : last).checked = true;
      for (const name of wrongs.keys()) blame(name, "");
    },
    texts: () => ({ lane: lane.value, title: title.value, before: before.value, paused: paused.checked, first: first.checked }),
    read() {
      const given = { lane: lane.value.trim(), title: title.value.trim(), not_before: before.value && moment(before.value) };
      const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
      if (first.checked) asked.first = true;
      if (paused.checked) asked.paused = true;
      return asked;
    },
  };
}
