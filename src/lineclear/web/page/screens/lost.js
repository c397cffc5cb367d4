// What stands where a screen's job or list cannot be had. Used by the Job, Log and History screens.

import { h } from "../dom.js";
import { tell } from "../prose.js";
import { link } from "../router.js";

/** Says why, and leads on. Answers an open screen. */
export function lost(place, problem) {
  place.append(h("section", { class: "empty" },
    tell(h("p", { role: "alert" }), problem.detail ?? problem.message),
    h("p", null, h("a", { href: link("history") }, "Every job that has ended"), " · ",
      h("a", { href: link("") }, "What runs now"))));
  return { title: "Not found", close() {} };
}
