// <line-clear lane="render">: one lane inside a page of somebody else's, on the same origin. That page
// loads this module and writes the element; nothing else. It must never style or script that page.

import { get } from "./api.js";
import { board } from "./board.js";
import { mayAct } from "./controls.js";
import { h, set } from "./dom.js";
import { laneActs } from "./lanes.js";
import { live } from "./live.js";
import { notices } from "./notices.js";
import { tell } from "./prose.js";
import { mount as mountToasts } from "./toast.js";
import { words } from "./words.js";

const panels = new Set();
let planned = false;

/** One stream for all panels of a page: of the one lane they show, or of all. */
function connect() {
  if (planned) return;
  planned = true;
  queueMicrotask(() => {
    planned = false;
    const lanes = new Set([...panels].map((panel) => panel.lane));
    if (lanes.size === 0) live.stop();
    else live.start({ lane: lanes.size === 1 ? [...lanes][0] : null });
  });
}

class Panel extends HTMLElement {
  static observedAttributes = ["lane"];
  #off = null;

  get lane() {
    return this.getAttribute("lane");
  }

  connectedCallback() {
    this.#off = new AbortController();
    const { signal } = this.#off;
    const style = h("link", { rel: "stylesheet", href: new URL("app.css", import.meta.url).href });
    const sentence = h("h2", { class: "sentence" }, words.connecting);
    const role = h("p", { class: "role", title: words.viewOnlyWhy, hidden: true }, words.viewOnly);
    const acts = laneActs(this.lane);
    const under = h("div", { class: "notices" });
    const surface = h("div", { class: "lc panel" });
    acts.hidden = true;
    const shown = board({ lane: this.lane });
    surface.append(h("div", { class: "header" }, sentence, h("div", { class: "header-acts" }, role, acts)), under, shown.el);
    const shadow = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    shadow.replaceChildren(style, surface);
    notices(under, surface, { signal });

    const header = async () => {
      const lane = live.state?.lanes.find((each) => each.name === this.lane);
      role.hidden = mayAct();
      if (lane) {
        tell(sentence, lane.sentence);
        set(surface.firstChild, "data-unserved", lane.waiting && !lane.workers ? "1" : null);
        acts.update([lane]);
      } else if (live.status === "lost" || live.state) {
        const problem = await get(`lanes/${encodeURIComponent(this.lane)}`).catch((error) => error);
        if (problem.status === 404) tell(sentence, problem.detail);
      }
    };
    for (const type of ["snapshot", "queue", "status", "rows", "hello"]) live.addEventListener(type, header, { signal });
    const unmount = mountToasts(surface);
    signal.addEventListener("abort", () => {
      shown.close();
      unmount();
    });
    panels.add(this);
    connect();
    header();
  }

  disconnectedCallback() {
    panels.delete(this);
    this.#off?.abort();
    connect();
  }

  attributeChangedCallback(_, before) {
    if (before === null || !this.isConnected) return;
    this.disconnectedCallback();
    this.connectedCallback();
  }
}

if (!customElements.get("line-clear")) customElements.define("line-clear", Panel);
