// The Settings screen: what this browser keeps (theme, shortcuts, notifications), what the lanes are
// set to, and who one is. Opened by the router. It must never show a token, only names and roles.

import { act, get, store } from "../api.js";
import { h } from "../dom.js";
import { list as shortcuts } from "../help.js";
import * as notify from "../notify.js";
import { settings as words } from "../phrases.js";
import { go } from "../router.js";
import { toast } from "../toast.js";

export async function open(root, { live }) {
  const me = await get("me").catch(() => live.me ?? {});
  const lanes = laneParts(live, me);
  root.append(h("div", { class: "settings" },
    part(words.theme, ...themeParts()),
    part(words.keys, ...keyParts()),
    part(words.notify, ...notifyParts()),
    part(words.lanes, lanes.element),
    part(words.you, ...yourParts(me)),
    part(words.tokens, ...(await tokenParts(me))),
    part(words.about, h("p", null, words.version(me.version ?? "")), h("p", { class: "hint" }, words.stops))));
  return { title: words.title, close: lanes.close };
}

const part = (title, ...children) => h("section", { class: "setting" }, h("h2", null, title), ...children);

function themeParts() {
  const chosen = store.get("theme", "auto");
  const pick = (name) => {
    store.set("theme", name);
    globalThis.lineclearTheme();
  };
  const choices = Object.entries(words.themes).map(([name, word]) => {
    const radio = h("input", { type: "radio", name: "theme", value: name, on: { change: () => pick(name) } });
    radio.checked = name === chosen;
    return h("label", { class: "choice" }, radio, word);
  });
  return [
    h("fieldset", { class: "field" }, h("legend", { class: "unseen" }, words.theme), ...choices),
    h("p", { class: "hint" }, words.themeHint),
    ...nightParts(),
  ];
}

function nightParts() {
  const [since, until] = (store.get("night") || "22:00-07:00").split("-");
  const on = h("input", { type: "checkbox", id: "night" });
  on.checked = Boolean(store.get("night"));
  const hour = (id, value) => {
    const input = h("input", { id, type: "time" });
    input.value = value;
    return input;
  };
  const [from, to] = [hour("night-from", since), hour("night-to", until)];
  const keep = () => {
    const hours = on.checked && from.value && to.value ? `${from.value}-${to.value}` : "";
    from.disabled = to.disabled = !on.checked;
    store.set("night", hours);
    globalThis.lineclearTheme();
  };
  for (const each of [on, from, to]) each.addEventListener("change", keep);
  from.disabled = to.disabled = !on.checked;
  return [
    h("label", { class: "choice" }, on, words.night),
    h("p", { class: "hours" }, h("label", { for: "night-from" }, words.nightFrom), from, h("label", { for: "night-to" }, words.nightTo), to),
    h("p", { class: "hint" }, words.nightHint),
  ];
}

function keyParts() {
  const on = h("input", { type: "checkbox", id: "keys" });
  on.checked = store.get("keys", "on") !== "off";
  on.addEventListener("change", () => store.set("keys", on.checked ? "on" : "off"));
  return [h("label", { class: "choice" }, on, words.keysOn), shortcuts()];
}

function notifyParts() {
  const told = h("p", { class: "hint", role: "status" }, words.notifyHint);
  if (!notify.possible()) return [h("p", { class: "hint" }, words.notifyMissing)];
  const on = h("input", { type: "checkbox", id: "notify" });
  on.checked = notify.on();
  on.addEventListener("change", async () => {
    const allowed = await notify.turn(on.checked ? "on" : "off");
    told.textContent = on.checked && !allowed ? words.notifyDenied : words.notifyHint;
    on.checked = notify.on();
  });
  return [h("label", { class: "choice" }, on, words.notifyOn), told];
}

// Delay and slots of each lane. A field somebody is typing in is left alone when the lane changes.
function laneParts(live, me) {
  const made = new Map();
  const element = h("div", { class: "lane-settings" });
  const none = h("p", null, words.noLanes);
  const update = () => {
    const lanes = live.state?.lanes ?? [];
    none.hidden = lanes.length > 0;
    for (const lane of lanes) {
      if (!made.has(lane.name)) {
        made.set(lane.name, laneForm(lane, me));
        element.append(made.get(lane.name).element);
      }
      made.get(lane.name).fill(lane);
    }
  };
  element.append(none);
  update();
  const events = ["snapshot", "queue"];
  for (const event of events) live.addEventListener(event, update);
  return { element, close: () => events.forEach((event) => live.removeEventListener(event, update)) };
}

function laneForm(lane, me) {
  const input = (name, min, step) => h("input", { id: `${name}-${lane.name}`, name, type: "number", min, step, required: true });
  const [delay, slots] = [input("delay_s", 0, "any"), input("slots", 1, 1)];
  const wrong = h("p", { class: "wrong", role: "alert" });
  const shown = {};
  const fill = (now) => {
    for (const [field, value] of [[delay, now.delay_s], [slots, now.slots]]) {
      const known = shown[field.name];
      shown[field.name] = String(value);
      if (known === undefined || field.value === known) field.value = String(value);
    }
  };
  const save = async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    const asked = { delay_s: Number(delay.value), slots: Number(slots.value) };
    try {
      fill(await act("PATCH", `lanes/${encodeURIComponent(lane.name)}`, asked));
      toast(words.saved(lane.name));
    } catch (problem) {
      wrong.textContent = problem.detail ?? String(problem);
    }
  };
  const button = h("button", { class: "btn", disabled: me.role === "view" }, h("span", null, words.save));
  const element = h("form", { class: "lane-setting", "aria-label": lane.name, on: { submit: save } },
    h("h3", null, lane.name),
    h("div", { class: "field" }, h("label", { for: delay.id }, words.delay), delay),
    h("div", { class: "field" }, h("label", { for: slots.id }, words.slots), slots), button, wrong);
  return { element, fill };
}

function yourParts(me) {
  const leave = async () => {
    await act("POST", "logout");
    go("login");
    location.reload();
  };
  const button = h("button", { type: "button", class: "btn", on: { click: leave } }, h("span", null, words.signOut));
  return [h("p", null, words.youAre(me.name ?? "", me.role)), me.signed_in ? button : null];
}

async function tokenParts(me) {
  const known = me.tokens ? await get("tokens").catch(() => []) : [];
  const named = known.map(({ name, role }) => h("li", null, h("strong", null, name), ` ${words.roles[role]}`));
  return [
    me.tokens ? h("ul", { class: "tokens" }, ...named) : h("p", null, words.tokensNone),
    h("p", null, words.tokensHow),
    h("pre", { class: "code" }, words.tokensShell.join("\n")),
  ];
}
