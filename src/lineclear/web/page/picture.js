// The queue as the server last told it: rows by id, and the lists made of them. Used by live.js.
// Events replace, they never count up, so that hearing one twice does no harm.

const ENDED_SHOWN = 10;

export class Picture {
  constructor() {
    this.rows = new Map();
    this.lines = new Map(); // ids of the window of each lane, in order
    this.state = null;
  }

  /** Everything anew. Answers the ids it speaks of. */
  snapshot(state) {
    const known = this.rows;
    this.rows = new Map();
    this.lines = new Map(state.lanes.map((lane) => [lane.name, []]));
    for (const row of [...state.running, ...state.waiting, ...state.ended]) this.rows.set(row.id, row);
    for (const row of state.waiting) {
      if (!this.lines.has(row.lane)) this.lines.set(row.lane, []);
      this.lines.get(row.lane).push(row.id);
    }
    this.state = state;
    return new Set([...known.keys(), ...this.rows.keys()]);
  }

  job(row) {
    const known = this.rows.get(row.id);
    if (known && known.version > row.version) return;
    this.rows.set(row.id, row);
    this.lists();
  }

  /** Only what changes while a job runs. */
  progress(part) {
    const row = this.rows.get(part.id);
    if (row) Object.assign(row, part);
  }

  order({ lanes }) {
    for (const [lane, ids] of Object.entries(lanes)) this.lines.set(lane, ids);
    this.lists();
  }

  queue(part) {
    Object.assign(this.state, part);
  }

  gone({ id }) {
    this.rows.delete(id);
    this.lists();
  }

  /** The three lists again. What left the window is forgotten once it is in none of them. */
  lists() {
    const all = [...this.rows.values()];
    const by = (what) => (a, b) => (a[what] ?? 0) - (b[what] ?? 0) || a.id - b.id;
    this.state.running = all.filter((row) => row.state === "running").sort(by("started_ms"));
    this.state.waiting = [...this.lines.values()]
      .flat()
      .map((id) => this.rows.get(id))
      .filter((row) => row?.state === "queued");
    const over = (row) => !["running", "queued"].includes(row.state) && !row.hidden;
    const ended = all.filter(over).sort(by("ended_ms")).reverse();
    this.state.ended = ended.slice(0, ENDED_SHOWN);
    for (const row of ended.slice(ENDED_SHOWN * 20)) this.rows.delete(row.id);
  }
}
