// The page's own sentences: buttons, dialogs, empty states, notices. A job's state has its words from
// the server (words.py). Used by every module that shows text. It must never be handed to a parser.

/** "1 job", "6 jobs". */
export const count = (n, noun, nouns = `${noun}s`) => `${number(n)} ${n === 1 ? noun : nouns}`;
export const number = (n) => n.toLocaleString("en-GB");
/** "Dune", "Dune and Emma", "Dune, Emma and 9 more". */
export function names(titles, most = 5) {
  const more = titles.length - most;
  if (more > 0) return `${titles.slice(0, most).join(", ")} and ${number(more)} more`;
  return titles.length < 2 ? titles.join("") : `${titles.slice(0, -1).join(", ")} and ${titles.at(-1)}`;
}

export const words = {
  cancel: "Cancel",
  close: "Close",
  undo: "Undo",
  more: "More",
  details: "Details",
  again: "Again?",
  asked: "Asked…",
  noAnswer: "Asked, no answer yet.",
  connecting: "Connecting",
  viewOnly: "View only: this token cannot act.",
  notNow: "Not while the connection is lost.",
  orderChanged: "Order changed · Show",
};
