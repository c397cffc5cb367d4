// Makes and patches elements. Used by every module of the page.
// Text enters the document here as text or attributes; it must never be parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const UNSAFE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;

const escaped = (char) => {
  const code = char.codePointAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
};

/** Text with everything escaped that could steer what stands beside it. */
export const visible = (text) => text.replace(UNSAFE, escaped);

/** An element: h("p", {class: "x", on: {click: fn}, dataset: {id: 1}}, "text", child). */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same in the namespace of pictures. */
export function svg(tag, attrs, ...children) {
  return fill(document.createElementNS(SVG, tag), attrs, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "on") {
      for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    } else if (name === "dataset") Object.assign(node.dataset, value);
    else if (name === "text") text(node, value);
    else set(node, name, value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(node, child);
    else if (child !== null && child !== undefined && child !== false && child !== true) {
      // What a field holds is kept as it is.
      node.append(child instanceof Node || node.localName === "textarea" ? child : visible(String(child)));
    }
  }
}

/** One attribute: null, undefined and false take it away, true leaves it empty. Never a style. */
export function set(node, name, value) {
  if (name === "style" || name.startsWith("on")) throw new TypeError(`not settable: ${name}`);
  if (name === "href" && /^\s*(javascript|data|vbscript):/i.test(String(value))) return;
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else {
    const told = value === true ? "" : String(value);
    const read = name === "title" || name.startsWith("aria-") ? visible(told) : told;
    if (node.getAttribute(name) !== read) node.setAttribute(name, read);
  }
}

/** Sets the text only where it differs, so that a selection in it survives. */
export function text(node, value) {
  const told = visible(String(value ?? ""));
  if (node.textContent !== told) node.textContent = told;
  return node;
}

/** Whether lists may change their order now; controls set `frozen`, `held` says what was withheld. */
export const order = Object.assign(new EventTarget(), { frozen: () => false, held: new Set() });

function hold(parent, waits) {
  if (order.held.has(parent) === waits) return;
  if (waits) order.held.add(parent);
  else order.held.delete(parent);
  order.dispatchEvent(new Event("held"));
}

/**
 * Makes the children of `parent` the `items`, in order, keeping the elements of known keys.
 * The element with the focus is never moved; while frozen nothing is added, moved or taken away.
 * Answers whether something was withheld.
 */
export function list(parent, items, { key, make, update, force = false }) {
  const known = parent.keyed ?? (parent.keyed = new Map());
  const keys = items.map((item) => String(key(item)));
  if (order.frozen() && !force && known.size > 0) {
    items.forEach((item, at) => known.has(keys[at]) && update?.(known.get(keys[at]), item));
    const same = keys.length === known.size && keys.every((each, at) => parent.order[at] === each);
    hold(parent, !same);
    return !same;
  }
  const wanted = new Set(keys);
  const focus = parent.getRootNode().activeElement;
  for (const [each, node] of known) {
    if (wanted.has(each)) continue;
    known.delete(each);
    if (node.parentNode !== parent) continue; // another list has taken it over
    if (focus && node.contains(focus)) passOn(node, (next) => wanted.has(next.dataset.key));
    node.remove();
  }
  const nodes = items.map((item, at) => {
    let node = known.get(keys[at]);
    if (node) update?.(node, item);
    else {
      node = make(item);
      node.dataset.key = keys[at];
      known.set(keys[at], node);
    }
    return node;
  });
  arrange(parent, nodes, focus);
  parent.order = keys;
  hold(parent, false);
  return false;
}

function arrange(parent, nodes, focus) {
  const anchor = Math.max(0, nodes.findIndex((node) => focus && node.contains(focus)));
  if (nodes.length && nodes[anchor].parentNode !== parent) parent.prepend(nodes[anchor]);
  for (let at = anchor - 1; at >= 0; at--) {
    if (nodes[at].nextSibling !== nodes[at + 1]) parent.insertBefore(nodes[at], nodes[at + 1]);
  }
  for (let at = anchor + 1; at < nodes.length; at++) {
    if (nodes[at].previousSibling !== nodes[at - 1]) nodes[at - 1].after(nodes[at]);
  }
}

/** The focus of a row that goes away moves to the next one, else to the one before. */
function passOn(node, stays) {
  for (const way of ["nextElementSibling", "previousElementSibling"]) {
    let next = node[way];
    while (next && !stays(next)) next = next[way];
    const target = next?.querySelector("a[href], button:not([hidden])");
    if (target) return target.focus({ preventScroll: true });
  }
  node.closest("[tabindex='-1']")?.focus({ preventScroll: true });
}
