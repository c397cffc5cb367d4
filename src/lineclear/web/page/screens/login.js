// The Login screen. Shown at /login and wherever nobody is signed in. A token behind # is tried at
// once; it must never stay in the address, nor be kept anywhere a script can read it.

import { act, root as mount } from "../api.js";
import { h } from "../dom.js";
import { login as words } from "../phrases.js";

export async function open(root) {
  const token = h("input", { id: "token", name: "token", type: "password", required: true,
    autocomplete: "current-password", autocapitalize: "off", spellcheck: "false", "aria-describedby": "token-hint token-wrong" });
  const wrong = h("p", { class: "wrong", id: "token-wrong", role: "alert" });
  const button = h("button", { class: "btn primary" }, h("span", null, words.verb));
  const enter = async (text) => {
    wrong.textContent = "";
    button.firstChild.textContent = words.trying;
    try {
      await act("POST", "login", { token: text });
      if (location.pathname.endsWith("/login")) location.replace(mount);
      else location.reload();
    } catch (problem) {
      wrong.textContent = problem.detail ?? String(problem);
      button.firstChild.textContent = words.verb;
      token.focus();
    }
  };
  const sent = (event) => {
    event.preventDefault();
    enter(token.value.trim());
  };
  root.append(h("form", { class: "login", method: "post", action: `${mount}login`, on: { submit: sent } },
    h("h2", null, words.title),
    h("label", { for: "token" }, words.token),
    h("p", { class: "hint", id: "token-hint" }, words.hint), token, wrong, button));
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(history.state, "", location.pathname + location.search);
    await enter(decodeURIComponent(given));
  }
  return { title: words.title };
}
