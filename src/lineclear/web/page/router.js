// Which screen stands in <main>, by the address. Used by main.js and every link of the page.
// It must never take a link away from the browser that it has no screen for.

import { root } from "./api.js";

const screens = [];
let current = null;
let shown = "";
let turn = 0;
let context = () => ({});

/** What is shown now: {close, title?, keys?, path, params}; null while the address leads elsewhere. */
export const screenNow = () => (current?.path === (match(new URL(location.href))?.path ?? "/") ? current : null);
export const router = new EventTarget();

/** `screen("/jobs/{id}", () => import("./screens/job.js"))` */
export function screen(pattern, loader) {
  const names = [...pattern.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
  const shape = new RegExp(`^${pattern.replace(/\{\w+\}/g, "([^/]+)")}/?$`);
  screens.push({ pattern, names, shape, loader });
}

function match(url) {
  if (!url.href.startsWith(root)) return null;
  const path = `/${url.pathname.slice(new URL(root).pathname.length)}`;
  for (const each of screens) {
    const found = each.shape.exec(path);
    if (!found) continue;
    const values = found.slice(1).map(decodeURIComponent);
    return { ...each, path, params: Object.fromEntries(each.names.map((n, at) => [n, values[at]])) };
  }
  return null;
}

/** An address below the mount: link("jobs/12"). */
export const link = (path) => new URL(path.replace(/^\//, ""), root).href;

/** Goes to a screen; a path is taken below the mount. */
export function go(url, { replace = false } = {}) {
  const to = /^https?:/.test(url) ? new URL(url) : new URL(link(url));
  if (!match(to)) return location.assign(to);
  remember();
  // An open sheet has an entry of its own: the screen takes it over.
  if (replace || history.state?.sheet) history.replaceState({}, "", to);
  else if (to.href !== location.href) history.pushState({}, "", to);
  return show({ focus: true });
}

function remember() {
  history.replaceState({ ...history.state, y: scrollY }, "");
}

async function show({ focus = false, y = 0 } = {}) {
  const url = new URL(location.href);
  const found = match(url);
  const mine = ++turn;
  const place = document.getElementById("main");
  shown = url.href;
  let next = null;
  try {
    const module = await (found ?? screens[0]).loader();
    if (mine !== turn) return;
    current?.close?.();
    current = null;
    place.replaceChildren();
    const params = found?.params ?? {};
    next = await module.open(place, { params, query: url.searchParams, ...context() });
  } catch (error) {
    if (mine === turn) place.textContent = `This screen cannot be shown: ${error.message}. Load the page again.`;
    throw error;
  }
  if (mine !== turn) return next?.close?.();
  current = { ...(next ?? {}), path: found?.path ?? "/", params: found?.params ?? {} };
  scrollTo(0, y);
  if (focus) place.focus({ preventScroll: true });
  router.dispatchEvent(new Event("screen"));
}

/** Changes the query in the address without opening the screen again (filters). */
export function query(params, { push = false } = {}) {
  const url = new URL(location.href);
  url.search = new URLSearchParams(params).toString();
  shown = url.href;
  history[push ? "pushState" : "replaceState"](history.state, "", url);
}

/** Begins: shows the screen of the address. `more()` is what every screen is opened with. */
export function start(more) {
  context = more;
  history.scrollRestoration = "manual";
  let later = 0;
  addEventListener("scroll", () => {
    clearTimeout(later);
    later = setTimeout(remember, 300);
  });
  addEventListener("popstate", () => {
    if (location.href !== shown) show({ y: history.state?.y ?? 0 });
  });
  document.addEventListener("click", (event) => {
    const at = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!at || !plain || event.defaultPrevented || at.target || at.hasAttribute("download")) return;
    if (!match(new URL(at.href))) return;
    event.preventDefault();
    go(at.href);
  });
  return show({ y: history.state?.y ?? 0 });
}
