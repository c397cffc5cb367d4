// What a log line's text looks like: ANSI colours become tones, other control characters are shown
// escaped. Used by logview.js. It never makes markup: it answers pieces of text with a class each.

import { visible } from "./dom.js";

// The log's writer stores control characters escaped, so that a colour arrives as the characters
// \x1b[31m; a log that others wrote may hold the character itself.
const COLOUR = /(?:\x1b|\\x1b)\[([0-9;]*)m/g;
const TONES = ["muted", "bad", "ok", "warn", "accent", "stale", "accent", ""];

/** Of a line that overwrites itself only what it says last. */
export const lastState = (text) => {
  const trimmed = text.replace(/\r+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("\r") + 1);
};

/** A line without its colours, as it is searched and copied. */
export const bare = (text) => visible(lastState(text).replace(COLOUR, ""));

/** [{text, look}]: the pieces of a line, each with its classes ("" where it is plain). */
export function pieces(line) {
  const text = lastState(line);
  const found = [];
  let style = {tone: "", bold: false, dim: false, under: false};
  let from = 0;
  const put = (part) => {
    if (part) found.push({text: visible(part), look: classes(style)});
  };
  for (const match of text.matchAll(COLOUR)) {
    put(text.slice(from, match.index));
    style = changed(style, match[1]);
    from = match.index + match[0].length;
  }
  put(text.slice(from));
  return found;
}

function changed(style, codes) {
  const next = {...style};
  const list = codes.split(";").map(Number);
  for (let at = 0; at < list.length; at += 1) {
    const code = list[at];
    if (code === 0) Object.assign(next, {tone: "", bold: false, dim: false, under: false});
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 4) next.under = true;
    else if (code === 22) Object.assign(next, {bold: false, dim: false});
    else if (code === 24) next.under = false;
    else if (code >= 30 && code <= 37) next.tone = TONES[code - 30];
    else if (code >= 90 && code <= 97) next.tone = TONES[code - 90];
    else if (code === 39) next.tone = "";
    else if (code === 38 || code === 48) {
      // Of the 256 colours the first sixteen have names; a free colour has no token, so no tone.
      const wide = list[at + 1] === 2;
      const index = list[at + 2];
      if (code === 38) next.tone = !wide && index < 16 ? TONES[index % 8] : "";
      at += wide ? 4 : 2;
    }
  }
  return next;
}

function classes({tone, bold, dim, under}) {
  const names = [tone || (dim ? "muted" : ""), bold ? "bold" : "", under ? "under" : ""];
  return names.filter(Boolean).map((name) => `ansi-${name}`).join(" ");
}
