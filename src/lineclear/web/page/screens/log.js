// The Log screen: one job's log, as tall as the window. Used by main.js for /jobs/{id}/log.
// It only shows; every act is on the job's own page.

import { get } from "../api.js";
import { h, visible } from "../dom.js";
import { live } from "../live.js";
import { logView } from "../logview.js";
import { go, link } from "../router.js";
import { lost } from "./lost.js";

const LEAST_PX = 320;
const EDGE_PX = 8;

export async function open(place, { params, query }) {
  const id = Number(params.id);
  let job;
  try {
    job = await get(`jobs/${id}`);
  } catch (problem) {
    return lost(place, problem);
  }
  const title = visible(job.title);
  const attempt = Number(query.get("try")) || null;
  const view = logView({ job: id, attempt, row: () => live.row(id) ?? job, name: `Log of ${title}` });
  const tries = h("nav", { class: "log-tries", "aria-label": "Tries" });
  for (let number = 1; job.tries > 1 && number <= job.tries; number += 1) {
    const here = number === (attempt ?? job.tries);
    tries.append(h("a", { class: "small", href: link(`jobs/${id}/log?try=${number}`),
      "aria-current": here ? "page" : null }, `Try ${number}`));
  }
  const screen = h("div", { class: "log-screen" },
    h("header", { class: "log-head" },
      h("h2", null, h("a", { href: link(`jobs/${id}`), class: "title" }, title), " · log"),
      tries.childElementCount > 0 && tries),
    view.node);
  place.append(screen);
  const fit = () => { screen.style.blockSize = `${room(screen)}px`; };
  fit();
  addEventListener("resize", fit);
  return {
    title: `${title} · log`,
    keys: { ...view.keys, l: () => go(`jobs/${id}`) },
    close() {
      removeEventListener("resize", fit);
      view.close();
    },
  };
}

/** What the window leaves between the header and, on phones, the tabs. */
function room(screen) {
  const nav = document.getElementById("nav");
  const below = nav && getComputedStyle(nav).position === "fixed" ? nav.offsetHeight : 0;
  const above = screen.getBoundingClientRect().top + scrollY;
  return Math.max(LEAST_PX, innerHeight - above - below - EDGE_PX);
}
