// Asks the server and acts on it. Used by every module that needs data; nothing else calls fetch.
// It must never leave the mount it was loaded from, nor send an act twice under two keys.

/** The address the page is mounted at, with its last slash. */
export const root = new URL("../", import.meta.url).href;

/** "signed-out" when an answer said so. */
export const api = new EventTarget();

/** The browser's own memory; without one (private windows) nothing is kept. */
export const store = {
  get(key, otherwise = "") {
    try {
      return localStorage.getItem(`lineclear.${key}`) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`lineclear.${key}`, value);
    } catch {
      return;
    }
  },
};

/** An answer that is no: `detail` is the sentence to show, `job` the row as it is now (409). */
export class Problem extends Error {
  constructor(status, { title = "", detail = "", field = null, job = null } = {}) {
    super(detail || title);
    Object.assign(this, { name: "Problem", status, title, detail: detail || title, field, job });
  }
}

/** Something nobody else has: for idempotency keys and the browser's name. */
export function unique() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}

/** The address of an API path, parameters without a value left out, lists repeated. */
export function address(path, params = {}) {
  const url = new URL(`api/v1/${path.replace(/^\//, "")}`, root);
  for (const [name, value] of Object.entries({ ...params, marks: 1 })) {
    for (const each of [value].flat()) {
      if (each !== null && each !== undefined && each !== "") url.searchParams.append(name, each);
    }
  }
  return url;
}

async function ask(url, options, timeout_ms) {
  let answer;
  try {
    answer = await fetch(url, {
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(timeout_ms),
      ...options,
    });
  } catch {
    throw new Problem(0, { title: "No answer", detail: "The server does not answer." });
  }
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return body;
  if (answer.status === 401) api.dispatchEvent(new Event("signed-out"));
  const detail = `The server answered ${answer.status}.`;
  throw new Problem(answer.status, { detail, ...(body ?? {}) });
}

/** What is at `path`. Throws Problem. */
export function get(path, params) {
  return ask(address(path, params), { headers: { Accept: "application/json" } }, 20_000);
}

/** Acts once, however often the request has to be sent. Throws Problem. */
export async function act(method, path, body = {}, { version = null, key = unique() } = {}) {
  const headers = {
    Accept: "application/json",
    "Content-Type": "application/json",
    "Lineclear-Request": "1",
    "Idempotency-Key": key,
  };
  if (version !== null) headers["If-Match"] = String(version);
  const options = { method, headers, body: JSON.stringify(body) };
  try {
    return await ask(address(path), options, 15_000);
  } catch (problem) {
    if (problem.status !== 0) throw problem;
    return ask(address(path), options, 15_000);
  }
}
