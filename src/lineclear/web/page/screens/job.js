// The Job screen: everything about one job, in the order a person asks. Used by main.js for
// /jobs/{id}, and by the Now screen for its right pane (compact). It never shows what is not known.

import { get } from "../api.js";
import { h, text, visible } from "../dom.js";
import { dataBlock, rawBlock } from "../jobdata.js";
import { jobHead } from "../jobhead.js";
import { facts, pace, section, steps, timeline, trace } from "../jobparts.js";
import { live, settled } from "../live.js";
import { logView } from "../logview.js";
import { duration, moment, prose } from "../prose.js";
import { go, link } from "../router.js";
import { triesTabs } from "../tries.js";
import { lost } from "./lost.js";

const TAIL = 20;
const PACE_MS = 10_000;
const SETTLE_MS = 150;
const WELL = ["done", "removed"];

export async function open(place, { params, compact = false }) {
  const id = Number(params.id);
  let found;
  try {
    found = await everything(id);
  } catch (problem) {
    return lost(place, problem);
  }
  const screen = new JobScreen(place, id, found, compact);
  return {
    title: visible(screen.job.title),
    keys: { ...screen.log.keys, l: () => go(`jobs/${id}/log`) },
    row: () => screen.job,
    close: () => screen.close(),
  };
}

async function everything(id) {
  const asked = [`jobs/${id}`, `jobs/${id}/steps`, `jobs/${id}/events`, `jobs/${id}/pace`];
  const [job, { steps: kept }, { events }, paced] = await Promise.all(asked.map((path) => get(path)));
  return { job, kept, events, paced };
}

/** Fills a part anew where what it shows has changed: else what is open or selected in it stays. */
function refill(part, from, make) {
  const key = JSON.stringify(from) ?? "";
  if (part.key !== key) part.fill(...make());
  part.key = key;
}

class JobScreen {
  /** Asks for all of it again, once, when no more has come for a moment. */
  soon = settled(() => this.load(), SETTLE_MS);
  #pacedAt = 0;
  #closed = false;

  constructor(place, id, found, compact) {
    Object.assign(this, { id, compact, ...found });
    this.head = jobHead(this.job, { compact });
    this.short = section("short", "The last it printed");
    this.why = section("why", "Why it ended");
    this.waits = section("waits", "Why it waits");
    this.steps = section("steps", "Steps");
    this.pace = section("pace", "");
    this.log = logView({ job: id, row: () => this.job, name: `Log of ${visible(this.job.title)}`,
      tools: !compact });
    const all = h("a", { href: link(`jobs/${id}/log`) }, "Whole log");
    const tail = section("log", "Log", this.log.node, h("p", null, all));
    this.parts = [this.head.node, this.short.node, this.why.node, this.waits.node, this.head.progress,
      this.steps.node, this.pace.node, tail.node];
    if (compact) this.parts.push(h("p", null, h("a", { href: link(`jobs/${id}`) }, "Everything about this job")));
    else this.rest();
    place.append(h("article", { class: `job${compact ? " job-compact" : ""}` }, ...this.parts));
    this.onRows = ({ ids }) => ids?.has(id) && this.changed();
    this.onTick = () => this.draw();
    // Why a job waits also depends on its lane and on those before it.
    this.onLane = () => this.job.state === "queued" && this.soon();
    for (const type of ["rows", "snapshot"]) live.addEventListener(type, this.onRows);
    for (const type of ["tick", "status"]) live.addEventListener(type, this.onTick);
    for (const type of ["queue", "order"]) live.addEventListener(type, this.onLane);
    this.draw({ whole: true });
  }

  /** What the right pane leaves out. */
  rest() {
    this.timeline = section("timeline", "What happened");
    this.tries = triesTabs(this.id, () => this.job);
    this.inputs = section("inputs", "Inputs");
    this.result = section("result", "Result");
    this.resources = section("resources", "Process");
    this.parts.push(this.timeline.node, this.tries.node, this.inputs.node, this.result.node,
      this.resources.node, rawBlock(() => this.job));
  }

  /** The stream said something of this job: its row at once, the rest when it has settled. */
  changed() {
    const row = live.row(this.id);
    const before = this.job;
    if (row && row.version >= before.version) {
      // The rows of lists have their arguments and results cut.
      const { args, result, ...now } = row;
      this.job = { ...before, ...now };
    }
    this.draw();
    if (!row || row.version !== before.version) this.soon();
  }

  async load() {
    try {
      Object.assign(this, await everything(this.id));
    } catch {
      return; // the connection's own notice says so; the next change asks again
    }
    if (this.#closed) return;
    this.draw({ whole: true });
    this.log.changed();
  }

  draw({ whole = false } = {}) {
    const { job } = this;
    this.head.update(job);
    this.waits.fill(...(job.state === "queued" && job.reasons?.length
      ? [h("ul", { class: "reasons" }, ...job.reasons.map((each) => h("li", null, prose(each))))] : []));
    this.drawPace(whole);
    if (!whole) return;
    this.drawEnd();
    refill(this.steps, [this.kept, job.try], () => steps(this.kept, job));
    if (this.compact) return;
    refill(this.timeline, this.events, () => [timeline(this.events)]);
    this.tries.update(this.events);
    this.drawData();
  }

  drawEnd() {
    const { job } = this;
    const badly = job.ended_ms !== null && !WELL.includes(job.look) && job.error;
    refill(this.why, badly ? [job.error, job.try] : null,
      () => (badly ? [h("p", null, prose(visible(job.error))), this.traceBlock()] : []));
    if (this.compact || job.state !== "failed" || !job.log) {
      this.last?.close();
      this.last = null;
      this.short.fill();
    } else if (!this.last) {
      this.last = logView({ job: this.id, row: () => this.job, first: TAIL, tools: false, attempt: job.try,
        name: "The last lines" });
      this.last.node.classList.add("log-short");
      this.short.fill(this.last.node);
    }
  }

  traceBlock() {
    const box = h("pre", { class: "trace", tabindex: "0", role: "group", "aria-label": "Trace" });
    const details = h("details", null, h("summary", null, "Show trace"), box);
    details.addEventListener("toggle", async () => {
      if (!details.open || box.textContent) return;
      try {
        const { lines } = await get(`jobs/${this.id}/log`, { try: this.job.try, lines: 1000 });
        text(box, trace(lines) || "The log holds no trace.");
      } catch (problem) {
        text(box, problem.detail ?? problem.message);
      }
    });
    return details;
  }

  drawPace(whole) {
    const { job, paced } = this;
    const last = paced.points.at(-1);
    const grew = job.state === "running" && Number.isFinite(job.done) && last && job.done !== last[1];
    const now = live.now();
    if (!whole && !(grew && now - this.#pacedAt > PACE_MS)) return;
    this.#pacedAt = now;
    const points = grew ? [...paced.points, [now, job.done]] : paced.points;
    this.pace.fill(...(points.length ? [pace({ ...paced, points }, { small: this.compact })] : []));
  }

  drawData() {
    const { job } = this;
    const none = job.args && typeof job.args === "object" && !Object.keys(job.args).length;
    refill(this.inputs, job.args, () => [
      none ? h("p", { class: "muted" }, "It was given nothing.") : dataBlock(job.args, "arguments"),
      h("p", null, h("a", { href: link(`add?again=${this.id}`) }, "Add again with changes")),
    ]);
    refill(this.result, [job.result, job.state], () => [
      job.result !== null && job.result !== undefined ? dataBlock(job.result, "result")
        : job.state === "done" && h("p", { class: "muted" }, "It returned nothing."),
    ]);
    const known = [
      ["Worked for", job.worked_s > 0 && duration(job.worked_s * 1000)],
      ["Process", job.pid && String(job.pid)],
      ["Last sign of life", job.beat_age_s !== null && job.state === "running" && `${duration(job.beat_age_s * 1000)} ago`],
      ["Last progress", job.moved_age_s !== null && job.state === "running" && `${duration(job.moved_age_s * 1000)} ago`],
      ["Usually", job.usual && prose(job.usual)],
    ].filter(([, value]) => value);
    this.resources.fill(...(known.length ? [h("dl", { class: "facts" },
      ...known.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
    job.state === "running" && h("p", { class: "muted" }, "As of ", moment(live.asOf || live.now(), { seconds: true }), ".")] : []));
  }

  close() {
    this.#closed = true;
    this.soon.stop();
    for (const type of ["rows", "snapshot"]) live.removeEventListener(type, this.onRows);
    for (const type of ["tick", "status"]) live.removeEventListener(type, this.onTick);
    for (const type of ["queue", "order"]) live.removeEventListener(type, this.onLane);
    this.log.close();
    this.last?.close();
    this.tries?.close();
    this.head.close();
  }
}
