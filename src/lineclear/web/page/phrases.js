// The sentences of Add, Metrics, Settings, Login, the keyboard and notifications; words.js has the
// others. Used by those screens. It must never be handed to a parser.

import { count, number, ordinal } from "./words.js";

export const add = {
  title: "Add a job",
  verb: "Add",
  adding: "Adding…",
  task: "What",
  inLane: (name) => `lane ${name}`,
  noTasks: "This page knows no tasks, so it can add no job. Start it with the application that has them:",
  noTasksShell: "lineclear --app module:queue serve",
  taskGone: (name) => `The task ${name} is not known to this page any more.`,
  when: "When and where",
  position: "Place in line",
  last: "Last",
  first: "First",
  notBefore: "Not before",
  notBeforeHint: "In your own time. Empty: as soon as its turn comes.",
  paused: "Paused: it waits until somebody resumes it",
  lane: "Lane",
  laneHint: "Empty: the lane of its task.",
  jobTitle: "Title",
  jobTitleHint: "Empty: the title its task gives it.",
  incomplete: "Its place and time are said here once nothing is missing.",
  place: (n) => `Would be ${ordinal(n)}`,
  kept: "What you typed is kept.",
  added: (n) => (n ? `Added as ${ordinal(n)}` : "Added"),
  there: (title, n) => `It is there already: ${title}${n ? `, ${ordinal(n)}` : ""}`,
  open: "Open",
  again: "Add again with changes",
  optional: "optional",
};

export const metrics = {
  title: "Metrics",
  since: "Of the last",
  spans: [["1d", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]],
  none: "No job has ended yet.",
  noneSince: "No job has ended in this time.",
  throughput: "Jobs ended",
  throughputSaid: (done, failed, every) => `${count(done, "job")} done and ${number(failed)} failed, in stretches of ${every}.`,
  done: "done",
  failed: "failed",
  run: "Run time",
  runSaid: (task, spread) => `Half of the ${number(spread.jobs)} jobs of ${task} took ${spread.median} or less, most of them ${spread.low} to ${spread.high}.`,
  wait: "Waiting time",
  waitSaid: (task, spread) => `Half of the ${number(spread.jobs)} jobs of ${task} started within ${spread.median} of being added.`,
  pace: "What runs now",
  noPace: "Nothing runs now that says how far it is.",
  hit: "Time ranges",
  hitSaid: (inside, of) => `${Math.round((100 * inside) / of)} % of the ${count(of, "range")} shown half-way held the real end. The aim is 80 %.`,
  hitNone: "No job that ended had a range to judge yet. The aim is that 80 % hold the real end.",
  oldest: "Waiting longest: ",
  oldestFor: (time) => `, for ${time}.`,
  oldestNone: "Nothing waits.",
  tasks: "By task",
  columns: ["Task", "Done", "Failed", "Usually runs", "Usually waits"],
  between: (spread) => `${spread.low} to ${spread.high}`,
  needs: "Needs two ended jobs of this kind.",
  capped: "More jobs ended than are counted here.",
  machine: "The same for machines: ",
};

export const settings = {
  title: "Settings",
  theme: "Theme",
  themes: { auto: "Auto", light: "Light", dark: "Dark", night: "Night" },
  themeHint: "Auto follows your system.",
  night: "Night by the clock",
  nightHint: "With Auto, the night theme is used between these hours. It is dim and red, and changes slowly.",
  nightFrom: "from",
  nightTo: "until",
  keys: "Keyboard shortcuts",
  keysOn: "Use single keys as shortcuts",
  notify: "Notifications",
  notifyOn: "Tell me when the queue is idle, and when a job fails or does not respond",
  notifyHint: "Only while this page is open and in view of the browser. Never for each job that is done.",
  notifyDenied: "This browser does not allow it: change that in the browser's settings for this site.",
  notifyMissing: "This browser has no notifications here. They need https or this machine's own address.",
  lanes: "Lanes",
  delay: "Seconds between jobs",
  slots: "Jobs at once",
  save: "Save",
  saved: (name) => `Lane ${name} is set.`,
  noLanes: "There is no lane yet: the first job makes one.",
  you: "You",
  youAre: (name, role) => `You act as ${name}${role === "view" ? ", and may look only" : ""}.`,
  signOut: "Sign out",
  tokens: "Tokens",
  tokensNone: "There are none: whoever reaches this address may do everything.",
  tokensHow: "Make one, in a shell, for control or only to look:",
  tokensShell: ["lineclear token add NAME", "lineclear token add --view NAME"],
  roles: { control: "control", view: "view only" },
  about: "About",
  version: (version) => `Line Clear ${version}.`,
  stops: "Stop lets a job reach its next safe point. Stop now, in the menu of each job, ends it at once.",
};

export const login = {
  title: "Sign in",
  token: "Token",
  hint: "It was printed when the page was started. Another one: lineclear token add NAME",
  verb: "Sign in",
  trying: "Signing in…",
};

export const notices = {
  idle: "The queue is idle",
  failed: (title) => `${title} failed`,
  silent: (title) => `${title} does not respond`,
};

export const help = {
  title: "Keyboard",
  off: "Shortcuts are off. Settings turns them on.",
  armed: "Stop needs a second press between 0.6 and 6 seconds after the first.",
  close: "Close",
  groups: [
    ["Rows", [
      [["j"], "next row"], [["k"], "row before"], [["Enter"], "open"],
      [["Esc"], "disarm, close"],
    ]],
    ["This job", [
      [["p"], "pause or resume"], [["s"], "stop: press twice"], [["r"], "retry"], [["x"], "remove"],
      [["[", "]"], "move up, down"], [["{", "}"], "move to top, bottom"], [["l"], "log"], [["f"], "follow the log"],
    ]],
    ["Everything", [
      [["Shift", "P"], "pause or resume all"], [["u"], "undo"], [["/"], "search"], [["a"], "add a job"],
      [["g", "n"], "Now"], [["g", "h"], "History"], [["g", "m"], "Metrics"], [["t"], "theme"], [["?"], "this help"],
    ]],
  ],
};
