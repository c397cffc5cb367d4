// A job's tries as tabs: what happened in each, and its log. Used by the Job screen. A try's log is
// loaded when its tab is chosen, never before.

import { h } from "./dom.js";
import { timeline } from "./jobparts.js";
import { logView } from "./logview.js";
import { link } from "./router.js";

/** Nothing is shown while there is one try only. */
export function triesTabs(job, row) {
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Tries" });
  const panel = h("div", { role: "tabpanel", tabindex: "-1" });
  const node = h("section", { class: "job-tries", hidden: true }, h("h3", null, "Tries"), tabs, panel);
  let events = [];
  let chosen = 0;
  let view = null;

  function choose(number, { focus = false } = {}) {
    if (number !== chosen) {
      view?.close();
      view = logView({ job, row, attempt: number, tools: false, name: `Log of try ${number}` });
    }
    chosen = number;
    for (const tab of tabs.children) {
      const here = Number(tab.dataset.number) === number;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
      if (here && focus) tab.focus();
    }
    panel.setAttribute("aria-label", `Try ${number}`);
    panel.replaceChildren(timeline(events.filter((event) => event.attempt === number && event.kind !== "step")),
      view.node, h("p", null, h("a", { href: link(`jobs/${job}/log?try=${number}`) }, `Whole log of try ${number}`)));
  }

  tabs.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = chosen + (by ?? 0);
    if (!by || next < 1 || next > tabs.childElementCount) return;
    event.preventDefault();
    choose(next, { focus: true });
  });

  return {
    node,
    update(told) {
      events = told;
      const count = row().tries;
      node.hidden = count < 2;
      if (count < 2) return;
      for (let number = tabs.childElementCount + 1; number <= count; number += 1) {
        tabs.append(h("button", { type: "button", role: "tab", dataset: { number }, "aria-selected": "false",
          on: { click: () => choose(number) } }, `Try ${number}`));
      }
      // The newest try's log stands above already.
      choose(chosen || count - 1);
    },
    close: () => view?.close(),
  };
}
