// The one live connection of a page: stream, reconnecting, watchdog, polling. Used by every screen.
// It must never hold a connection while the page is hidden, nor present old things as of now.

import { address, api, get, store, unique } from "./api.js";
import { Picture } from "./picture.js";
import { reader } from "./prose.js";

const HELLO_MS = 5_000;
const SILENCE_MS = 25_000;
const POLL_MS = 5_000;
const GRACE_MS = 1_500;
const BACKOFF_S = [1, 2, 4, 8, 15];
const DURABLE = ["snapshot", "job", "order", "queue", "gone"];

class Live extends EventTarget {
  status = "idle";
  me = null;
  asOf = 0; // the server's time of the last word from it
  retryAt = 0; // the browser's time of the next try while lost
  static = null;
  #picture = new Picture();
  #lane = null;
  #slow = false;
  #source = null;
  #cursor = "";
  #log = null;
  #offset = 0;
  #failures = 0;
  #timers = {};
  #awake = null; // before the first start

  get state() {
    return this.#picture.state;
  }

  row(id) {
    return this.#picture.rows.get(Number(id));
  }

  /** The server's time. */
  now() {
    return Date.now() + this.#offset;
  }

  /** Whether what is shown is known to be so now. */
  get fresh() {
    return this.status === "live" || this.status === "polling";
  }

  /** Begins, or goes on with another lane (null: all of them). */
  start({ lane = null, slow = false } = {}) {
    const known = this.#awake !== null;
    const same = this.#awake && lane === this.#lane;
    if (lane !== this.#lane) this.#cursor = "";
    this.#lane = lane;
    this.#slow = slow;
    this.#awake = true;
    if (known) return same || document.hidden || this.#open();
    reader.now = () => this.now();
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#sleep() : this.#wake()));
    addEventListener("pagehide", () => this.#sleep());
    addEventListener("pageshow", (event) => event.persisted && this.#wake());
    addEventListener("online", () => this.#trying() && this.tryNow());
    api.addEventListener("signed-out", () => this.#signedOut());
    this.#become("connecting");
    if (!document.hidden) this.#open();
  }

  /** Holds no connection from now on. */
  stop() {
    this.#awake = false;
    this.#close();
  }

  /** At most one word every 5 s (night). */
  slow(yes) {
    if (this.#slow === yes) return;
    this.#slow = yes;
    if (this.#source) this.#open();
  }

  tryNow() {
    this.#failures = 0;
    this.#open();
  }

  /** The lines of one job's log from `cursor` on; one log at a time. fn({lines, end, over, try}) */
  watchLog(job, cursor, fn) {
    this.#log = { job: Number(job), cursor, fn };
    if (this.#source) this.#open();
  }

  unwatch() {
    if (!this.#log) return;
    this.#log = null;
    if (this.#source) this.#open();
  }

  /** A row an act answered: shown at once, the stream only confirms it. */
  put(row) {
    if (!this.state || !row) return;
    this.#picture.job(row);
    this.#emit("rows", { ids: new Set([row.id]) });
  }

  #emit(type, detail = {}) {
    this.dispatchEvent(Object.assign(new Event(type), detail));
  }

  #become(status) {
    if (this.status === status) return;
    this.status = status;
    this.#emit("status");
  }

  #later(name, fn, ms) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(fn, ms);
  }

  #close() {
    for (const name of Object.keys(this.#timers)) clearTimeout(this.#timers[name]);
    this.#source?.close();
    this.#source = null;
  }

  #sleep() {
    this.#close();
  }

  #wake() {
    if (document.hidden || this.#source || !this.#awake) return;
    this.#failures = 0;
    if (this.status === "polling") return this.#poll();
    // No banner for the moment that every unlocking of a phone takes.
    if (this.fresh) this.#become("connecting");
    this.#open();
    this.#later("grace", () => this.status === "connecting" && this.#lose(), GRACE_MS);
  }

  #trying() {
    return !document.hidden && !this.#source && ["lost", "starting"].includes(this.status);
  }

  #open() {
    this.#close();
    const log = this.#log;
    const source = new EventSource(
      address("stream", {
        after: this.#cursor,
        lane: this.#lane,
        log: log && `${log.job}@${log.cursor ?? ""}`,
        slow: this.#slow ? 1 : null,
        browser: browser(),
      }),
    );
    this.#source = source;
    source.onerror = () => this.#source === source && this.#failed();
    source.addEventListener("hello", (event) => this.#hello(JSON.parse(event.data)));
    source.addEventListener("tick", (event) => {
      this.#heard(JSON.parse(event.data).now_ms);
      this.#emit("tick");
    });
    source.addEventListener("progress", (event) => {
      const part = JSON.parse(event.data);
      this.#heard();
      this.#picture.progress(part);
      this.#emit("rows", { ids: new Set([part.id]) });
    });
    source.addEventListener("log", (event) => this.#logged(JSON.parse(event.data)));
    source.addEventListener("replaced", () => {
      this.#close();
      this.#become("elsewhere");
    });
    for (const type of DURABLE) {
      source.addEventListener(type, (event) => this.#told(type, JSON.parse(event.data), event));
    }
    this.#later("hello", () => this.#poll(), HELLO_MS);
  }

  #hello(told) {
    clearTimeout(this.#timers.hello);
    this.#failures = 0;
    this.static ??= told.static;
    this.me = { ...this.me, name: told.name, role: told.role };
    reader.name = told.name;
    this.#heard(told.now_ms);
    if (this.state) this.#become("live");
    this.#emit("hello", { changed: told.static !== this.static });
  }

  #heard(now_ms = null) {
    if (now_ms !== null) this.#offset = now_ms - Date.now();
    this.asOf = this.now();
    this.#later("silence", () => this.#failed(), SILENCE_MS);
  }

  #told(type, data, event) {
    this.#heard(data.now_ms ?? null);
    if (event.lastEventId) this.#cursor = event.lastEventId;
    if (type !== "snapshot" && !this.state) return;
    const ids = this.#picture[type](data);
    if (type === "snapshot") this.#become("live");
    if (type === "job" || type === "gone") this.#emit("rows", { ids: new Set([data.id]) });
    else this.#emit(type, { ids });
  }

  #logged(data) {
    this.#heard();
    if (data.job !== this.#log?.job) return;
    this.#log.cursor = data.end ?? this.#log.cursor;
    this.#log.fn(data);
  }

  async #failed() {
    this.#close();
    if (document.hidden) return;
    // What was never there is not lost: who has yet to sign in is told that, and nothing else.
    const never = this.status === "connecting" && !this.asOf;
    if (!never) this.#lose();
    // An EventSource hides the status of what it got: the page asks.
    const status = await get("me").then(
      () => 200,
      (problem) => problem.status,
    );
    if (never && status !== 401) this.#lose();
    if (this.#trying()) this.#become(status === 503 ? "starting" : "lost");
  }

  #lose() {
    const wait_s = BACKOFF_S[Math.min(this.#failures++, BACKOFF_S.length - 1)];
    const wait_ms = wait_s * 1000 * (0.8 + 0.4 * Math.random());
    this.retryAt = Date.now() + wait_ms;
    this.#later("retry", () => this.#open(), wait_ms);
    if (["lost", "starting"].includes(this.status)) this.#emit("status");
    else this.#become("lost");
  }

  #signedOut() {
    this.#close();
    this.#become("signed-out");
  }

  /** The stream says nothing (something between holds it back): ask every 5 s instead. */
  async #poll() {
    this.#close();
    const mine = {};
    this.polling = mine;
    try {
      const state = await get("state", { lane: this.#lane });
      if (this.polling !== mine || this.#source || document.hidden) return;
      if (!this.me) this.me = await get("me");
      reader.name = this.me.name;
      this.#offset = state.now_ms - Date.now();
      this.asOf = state.now_ms;
      this.#failures = 0;
      const ids = this.#picture.snapshot(state);
      this.#become("polling");
      this.#emit("snapshot", { ids });
      this.#later("poll", () => this.#poll(), POLL_MS);
    } catch (problem) {
      if (this.polling === mine && problem.status !== 401) this.#failed();
    }
  }
}

function browser() {
  const known = store.get("browser");
  if (known) return known;
  const made = unique();
  store.set("browser", made);
  return made;
}

/** Events: "rows" {ids}, "order", "queue", "status", "snapshot" {ids}, "hello" {changed}, "tick". */
export const live = new Live();

/** A reading that is done once, `ms` after the last call for it, and not while the page is hidden. */
export function settled(read, ms) {
  let timer = 0;
  const seen = () => (document.hidden ? document.addEventListener("visibilitychange", seen, { once: true }) : read());
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(seen, ms);
  };
  soon.stop = () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
  return soon;
}
