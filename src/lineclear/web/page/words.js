// The page's own sentences: buttons, dialogs, empty states, notices. A job's state has its words from
// the server (words.py). Used by every module that shows text. It must never be handed to a parser.

export const number = (n) => n.toLocaleString("en-GB");
/** "1 job", "6 jobs". */
export const count = (n, noun, nouns = `${noun}s`) => `${number(n)} ${n === 1 ? noun : nouns}`;
/** "Dune", "Dune and Emma", "Dune, Emma and 9 more". */
export function names(titles, most = 5) {
  const more = titles.length - most;
  if (more > 0) return `${titles.slice(0, most).join(", ")} and ${number(more)} more`;
  return titles.length < 2 ? titles.join("") : `${titles.slice(0, -1).join(", ")} and ${titles.at(-1)}`;
}
/** "1st", "12th", "23rd". */
export function ordinal(n) {
  const ending = { 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th";
  return `${number(n)}${[11, 12, 13].includes(n % 100) ? "th" : ending}`;
}

/** Each act on a job: its button, its accessible name, what is said when it is done. */
export const acts = {
  top: { label: "Move to top", name: (t) => `Move ${t} to the top`, done: (t) => `Moved ${t} to the top.` },
  up: { label: "Move up", short: "↑", name: (t) => `Move ${t} up`, done: (t) => `Moved ${t} up.` },
  down: { label: "Move down", short: "↓", name: (t) => `Move ${t} down`, done: (t) => `Moved ${t} down.` },
  bottom: { label: "Move to bottom", name: (t) => `Move ${t} to the bottom`, done: (t) => `Moved ${t} to the bottom.` },
  force: { label: "Start now", name: (t) => `Start ${t} now`, done: (t) => `Starting ${t} now.` },
  hold: { label: "Pause", name: (t) => `Pause ${t}`, done: (t) => `Paused ${t}. It keeps its place.` },
  release: { label: "Resume", name: (t) => `Resume ${t}`, done: (t) => `Resumed ${t}.` },
  retry: { label: "Retry", name: (t) => `Retry ${t}`, done: (t) => `Added ${t} again.` },
  retryFirst: { label: "Retry first", name: (t) => `Retry ${t}, first in line`, done: (t) => `Added ${t} again, first in line.` },
  stop: { label: "Stop", name: (t) => `Stop ${t}`, again: "stop", done: (t) => `Stopping ${t}.` },
  kill: { label: "Stop now", name: (t) => `Stop ${t} now`, again: "stop now", done: (t) => `Stopping ${t} now.` },
  remove: { label: "Remove", name: (t) => `Remove ${t}`, done: (t) => `Removed ${t}.` },
};

export const words = {
  cancel: "Cancel",
  close: "Close",
  undo: "Undo",
  details: "Details",
  more: (title) => `More for ${title}`,
  again: "Again?",
  asked: "Asked…",
  noAnswer: "Asked, no answer yet.",
  pressAgain: (verb, stakes) => `Press again to ${verb}.${stakes ? ` ${stakes}` : ""}`,
  pressAgainName: (verb, title) => `Press again to ${verb} ${title}`,
  place: (title, place, total) => `${title}, now ${ordinal(place)} of ${number(total)}`,

  connecting: "Connecting",
  viewOnly: "View only",
  viewOnlyWhy: "You look with a token that may see but not act.",
  notNow: "Not while the connection is lost.",
  orderChanged: "Order changed · Show",
  noServer: "The queue server does not answer.",
  lost: "Connection lost at ",
  lostThen: ". What you see is from then.",
  tryingIn: (s) => `Trying again in ${s} s.`,
  trying: "Trying again.",
  tryNow: "Try now",
  back: "Connected again",
  starting: "The queue server is starting.",
  signedOut: "Signed out.",
  signIn: "Sign in",
  elsewhere: "Not live: this browser shows the queue in other tabs.",
  useHere: "Use it here",
  polling: "Live updates off, refreshing every 5 s.",
  asOf: "as of ",

  running: "Running",
  waiting: "Waiting",
  ended: "Ended",
  nothing: ["Nothing is running and nothing waits. Add a job here, or from a shell: ", "lineclear add TASK NAME=VALUE"],
  add: "Add a job",
  noRunning: "Nothing runs.",
  noWaiting: "Nothing waits.",
  noWaitingUntil: (title) => `Nothing waits. The queue ends when ${title} is done.`,
  noEnded: "No job has ended yet.",
  allEnded: "All ended jobs",
  laneEmpty: "Nothing runs and nothing waits.",
  andMore: (n) => `and ${number(n)} more`,
  loading: "Loading…",

  pauseAll: "Pause all",
  resumeAll: "Resume all",
  pause: "Pause",
  resume: "Resume",
  pauseFor: "Pause for a time, or with a reason…",
  pauseTitle: (where) => `Pause ${where}`,
  everyLane: "every lane",
  lane: (name) => `lane ${name}`,
  why: "Why (shown to everybody)",
  for15: "15 min",
  for60: "1 h",
  until7: "Until 07:00",
  untilResumed: "Until I resume",
  paused: (n) => `No new jobs will start.${n ? ` ${number(n)} ${n === 1 ? "is" : "are"} still running.` : ""}`,
  resumed: "Jobs start again.",
  pauseToo: "Pause it too",

  delay: "Delay between jobs…",
  delayTitle: "Delay between jobs",
  delayIs: (s) => `Delay between jobs: ${s % 60 ? `${number(s)} s` : `${number(s / 60)} min`}`,
  delayNone: "None",
  delayOff: "No delay between jobs",
  delayLeft: (left) => `${left} left of the delay`,
  startNext: "Start next now",
  custom: "Other, in minutes",
  set: "Set",
  slots: "Jobs at once…",
  slotsTitle: "Jobs at once",
  slotsIs: (n) => `${count(n, "slot")}`,
  slotsOther: "Other number",
  stopNow: "Stop now",
  stopNowName: (name) => `Stop everything in lane ${name} now`,
  stopNowAgain: (rows) => {
    const lost = rows.slice(0, 3).map((row) => `${row.title}: ${row.stakes || "stops at once."}`);
    const more = rows.length > 3 ? ` And ${number(rows.length - 3)} more.` : "";
    return `Press again to stop ${count(rows.length, "job")} at once and pause. ${lost.join(" ")}${more}`;
  },
  stopped: (n) => (n ? `Stopped ${count(n, "job")}, back in line. Paused.` : "Nothing was running. Paused."),
  removeAll: "Remove all waiting…",
  removeAllTitle: (n) => `Remove ${count(n, "waiting job")}?`,
  removeVerb: (n) => `Remove ${count(n, "job")}`,
  removed: (n) => `Removed ${count(n, "job")}.`,
  retryAll: (n, more) => `Retry all failed (${number(n)}${more ? "+" : ""})`,
  retried: (n, refused) => `Added ${count(n, "job")} again.${refused ? ` ${count(refused, "job")} could not be.` : ""}`,
  clear: "Clear ended…",
  clearTitle: "Clear ended jobs",
  clearLine: "They leave this list and stay in History. Logs stay.",
  clearDone: (n) => `Done only (${n})`,
  clearButFailed: (n) => `All but failed (${n})`,
  clearAll: (n) => `All (${n})`,
  clearVerb: (n) => `Hide ${count(n, "job")}`,
  cleared: (n) => `Cleared ${count(n, "job")}.`,
  today: "Today",
  todayOf: (found) => [],
  pane: "Selected job",
  paneEmpty: "Select a job to see more of it.",
};
