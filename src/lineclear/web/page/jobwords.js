// The sentences of the Job, Log and History screens; words.js has those that all share. Used by those
// screens and their parts. It must never be handed to a parser.

import { count, number } from "./words.js";

export const history = {
  title: "History",
  filters: "Filters",
  pages: "Pages",
  state: "State",
  states: { done: "Done", failed: "Failed or lost", cancelled: "Stopped or removed" },
  anyState: "All that ended",
  kind: "Task",
  lane: "Lane",
  any: "All",
  since: "Since",
  spans: { "1d": "Last 24 hours", "7d": "Last 7 days", "30d": "Last 30 days" },
  ever: "Ever",
  search: "Title has",
  hidden: "Cleared ones too",
  cleared: "cleared",
  none: (filters) => `No job matches ${filters}.`,
  clear: "Clear filters",
  nothing: "No job has ended yet.",
  noOlder: "There are no earlier jobs.",
  news: "More jobs have ended · Show",
  earlier: "Earlier jobs",
  newest: "Newest jobs",
  newestHere: "The newest",
  older: "Earlier ones",
  caption: "Jobs that have ended, the newest first",
  job: "Job",
  ended: "Ended",
  took: "Took",
  controls: "Controls",
};

export const ended = {
  retryAll: (n) => `Retry all failed (${number(n)})`,
  retryMany: (n) => `Retry the last ${number(n)} failed`,
  retried: (n) => `Added ${count(n, "job")} again.`,
  refused: (n, why) => `${count(n, "job")} could not be added again: ${why}`,
  clear: "Clear ended…",
  clearTitle: "Clear ended jobs",
  clearVerb: "Clear",
  clearWhat: "Which of them",
  choices: {
    done: "Done only",
    unfailed: "All but failed",
    all: "All",
  },
  hides: (n) => `Hides ${count(n, "job")} from the lists. Their logs stay.`,
  hidesMany: "Hides more jobs than are counted here. Their logs stay.",
  cleared: (n) => `Cleared ${count(n, "job")}.`,
};
