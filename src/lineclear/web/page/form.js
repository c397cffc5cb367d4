// A form made from a task's JSON schema: one labelled field for each argument.
// Used by screens/add.js. It only builds, checks and reads fields; it must never send anything, and
// never lose a text that does not fit: what was typed is kept as text until it is read.

import { h } from "./dom.js";
import { add as words } from "./phrases.js";

const SCALARS = ["string", "integer", "number", "boolean"];

// What a schema asks for: {kind, schema, nullable}. Kinds: boolean, choice, number, integer, text,
// date, time, moment, list (of a simple kind) and json for everything else.
export function kindOf(schema, defs) {
  const { one, nullable } = plainly(schema, defs);
  const found = (kind, more) => ({ kind, schema: one, nullable, ...more });
  if (one.enum || "const" in one) {
    return found("choice", { choices: one.enum ?? [one.const] });
  }
  if (one.type === "array" && one.items && !one.prefixItems) {
    const item = kindOf(one.items, defs);
    if (!["json", "list"].includes(item.kind) && !item.nullable) return found("list", { item });
  }
  if (!SCALARS.includes(one.type) || one.anyOf || one.oneOf || one.allOf) return found("json");
  if (one.type !== "string") return found(one.type);
  return found({ date: "date", time: "time", "date-time": "moment" }[one.format] ?? "text");
}

function plainly(schema, defs) {
  let one = schema ?? {};
  let nullable = false;
  for (let depth = 0; depth < 20; depth += 1) {
    if (one.$ref) {
      const { $ref, ...rest } = one;
      one = { ...(defs?.[$ref.split("/").at(-1)] ?? {}), ...rest };
    } else if (one.allOf?.length === 1) {
      const { allOf, ...rest } = one;
      one = { ...allOf[0], ...rest };
    } else if (one.anyOf?.some((each) => each.type === "null")) {
      const { anyOf, ...rest } = one;
      const others = anyOf.filter((each) => each.type !== "null");
      nullable = true;
      one = others.length === 1 ? { ...others[0], ...rest } : { ...rest, anyOf: others };
    } else break;
  }
  return { one, nullable };
}

// Fields for every property. `texts` are texts typed earlier, by name; `values` JSON values that
// stand in for the defaults. Answers {element, texts(), read(), blame(name, sentence), clear()}.
export function form(schema, { texts = {}, values = {} } = {}) {
  const required = new Set(schema.required ?? []);
  const fields = new Map();
  for (const [name, given] of Object.entries(schema.properties ?? {})) {
    const asked = { ...kindOf(given, schema.$defs), name, given, required: required.has(name) };
    const start = name in values ? values[name] : given.default;
    fields.set(name, field(asked, name in texts ? { typed: texts[name] } : { value: start }));
  }
  const named = (name) => fields.get(String(name).replace(/^args\./, "").split(".")[0]);
  return {
    element: h("div", { class: "fields" }, ...[...fields.values()].map((each) => each.element)),
    texts: () => Object.fromEntries([...fields].map(([name, each]) => [name, each.typed()])),
    read() {
      const read = [...fields].map(([name, each]) => [name, each.read()]);
      return Object.fromEntries(read.filter(([, value]) => value !== undefined));
    },
    blame: (name, sentence) => named(name)?.blame(sentence) ?? false,
    clear: () => fields.forEach((each) => each.blame("")),
  };
}

let made = 0;

function field(asked, start) {
  made += 1;
  const id = `field-${made}`;
  const wrong = h("p", { class: "wrong", id: `${id}-wrong` });
  const told = hint(asked);
  const about = told ? h("p", { class: "hint", id: `${id}-hint` }, told) : null;
  const control = CONTROLS[asked.kind](asked, id, start);
  const main = control.main ?? control.element;
  main.setAttribute("aria-describedby", [about?.id, wrong.id].filter(Boolean).join(" "));
  const name = asked.given.title && asked.given.title !== asked.name ? asked.given.title : asked.name;
  const always = asked.required || ["boolean", "choice"].includes(asked.kind);
  const label = [name, always ? null : h("span", { class: "optional" }, ` ${words.optional}`)];
  const blame = (sentence) => {
    wrong.textContent = sentence;
    if (sentence) main.setAttribute("aria-invalid", "true");
    else main.removeAttribute("aria-invalid");
    if (sentence) (control.focus ?? main).focus();
    return true;
  };
  const element =
    asked.kind === "list"
      ? h("fieldset", { class: "field", dataset: { field: asked.name } },
          h("legend", null, ...label), about, control.element, wrong)
      : h("div", { class: `field kind-${asked.kind}`, dataset: { field: asked.name } },
          h("label", { for: id }, ...label), about, control.element, wrong);
  element.addEventListener("input", () => blame(""));
  return { element, blame, typed: control.typed, read: control.read };
}

function hint({ kind, schema, nullable, given }) {
  const told = [given.description ?? schema.description];
  const low = schema.minimum ?? schema.exclusiveMinimum;
  const high = schema.maximum ?? schema.exclusiveMaximum;
  if (low !== undefined && high !== undefined) told.push(`${low} to ${high}.`);
  else if (low !== undefined) told.push(`${low} or more.`);
  else if (high !== undefined) told.push(`${high} at most.`);
  if (kind === "json") told.push(`JSON${schema.type ? `, ${schema.type}` : ""}.`);
  if (nullable && kind !== "choice" && kind !== "boolean") told.push("Leave it empty for none.");
  return told.filter(Boolean).join(" ");
}

// A control answers {element, typed(): text or texts, read(): the JSON value, undefined for "leave
// it to the default"}. Reading is only done while the browser calls the form valid.
const CONTROLS = {
  text: (asked, id, start) => line(asked, id, start, "text"),
  integer: (asked, id, start) => line(asked, id, start, "number"),
  number: (asked, id, start) => line(asked, id, start, "number"),
  date: (asked, id, start) => line(asked, id, start, "date"),
  time: (asked, id, start) => line(asked, id, start, "time"),
  moment: (asked, id, start) => line(asked, id, start, "datetime-local"),
  boolean: (asked, id, start) => (asked.nullable ? choice : tick)(asked, id, start),
  choice: (asked, id, start) => choice(asked, id, start),
  list: (asked, id, start) => list(asked, id, start),
  json: (asked, id, start) => json(asked, id, start),
};

function line(asked, id, start, type) {
  const text = start.typed ?? shown(asked.kind, start.value);
  const long = type === "text" && (text.includes("\n") || asked.schema.maxLength > 200);
  const input = h(long ? "textarea" : "input", {
    id,
    name: asked.name,
    type: long ? null : type,
    rows: long ? 4 : null,
    required: asked.required || null,
    step: asked.kind === "integer" ? (asked.schema.multipleOf ?? 1)
      : asked.kind === "number" ? "any" : asked.kind === "time" ? 1 : null,
    min: asked.schema.minimum ?? (asked.kind === "integer" ? above(asked.schema) : null),
    max: asked.schema.maximum ?? (asked.kind === "integer" ? below(asked.schema) : null),
    inputmode: asked.kind === "integer" ? "numeric" : null,
    autocomplete: "off",
    autocapitalize: type === "text" ? "off" : null,
    spellcheck: type === "text" ? "false" : null,
  });
  input.value = text;
  const judge = () => input.setCustomValidity(misfit(asked, input.value));
  input.addEventListener("input", judge);
  judge();
  const read = () => {
    const given = input.value;
    if (given === "" && asked.nullable) return null;
    if (given === "" && (asked.kind !== "text" || !("default" in asked.given))) return undefined;
    if (asked.kind === "integer" || asked.kind === "number") return Number(given);
    return asked.kind === "moment" ? moment(given) : given;
  };
  return { element: input, typed: () => input.value, read };
}

const above = (schema) => ("exclusiveMinimum" in schema ? schema.exclusiveMinimum + 1 : null);
const below = (schema) => ("exclusiveMaximum" in schema ? schema.exclusiveMaximum - 1 : null);

// What the browser's own checks do not know; empty where nothing is wrong.
function misfit({ kind, schema, nullable }, text) {
  if (text === "") return "";
  if (kind === "integer" && !Number.isSafeInteger(Number(text))) {
    return "This number is too large for a form: give it on the command line.";
  }
  if (kind !== "text") return "";
  if (text.length < (schema.minLength ?? 0)) return `At least ${schema.minLength} characters.`;
  if (text.length > (schema.maxLength ?? Infinity)) {
    return `${text.length} characters, ${schema.maxLength} at most.`;
  }
  return schema.pattern && !matches(schema.pattern, text) ? `It must match ${schema.pattern}` : "";
}

function matches(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true; // not a pattern this browser reads; the server judges
  }
}

// The text of a value in a field.
function shown(kind, value) {
  if (value === undefined || value === null) return "";
  if (kind !== "moment") return typeof value === "string" ? value : JSON.stringify(value);
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? "" : local(at);
}

export function local(at) {
  const part = (value, digits = 2) => String(value).padStart(digits, "0");
  const day = `${part(at.getFullYear(), 4)}-${part(at.getMonth() + 1)}-${part(at.getDate())}`;
  return `${day}T${part(at.getHours())}:${part(at.getMinutes())}`;
}

// The browser's local time with its offset: "2026-12-01T02:30:00+01:00".
export function moment(text) {
  const minutes = -new Date(text).getTimezoneOffset();
  const size = Math.abs(minutes);
  const part = (value) => String(value).padStart(2, "0");
  const offset = `${minutes < 0 ? "-" : "+"}${part(Math.floor(size / 60))}:${part(size % 60)}`;
  return `${text.length === 16 ? `${text}:00` : text}${offset}`;
}

function tick(asked, id, start) {
  const input = h("input", { id, name: asked.name, type: "checkbox" });
  input.checked = start.typed === undefined ? start.value === true : start.typed === "yes";
  return {
    element: input,
    typed: () => (input.checked ? "yes" : "no"),
    read: () => input.checked,
  };
}

function choice(asked, id, start) {
  const choices = asked.choices ?? [true, false];
  const word = (value) => (value === true ? "yes" : value === false ? "no"
    : typeof value === "string" ? value : JSON.stringify(value));
  const options = choices.map((value, at) => h("option", { value: String(at) }, word(value)));
  const empty = asked.nullable && !choices.includes(null) ? "none" : "Choose…";
  const select = h("select", { id, name: asked.name, required: asked.required && !asked.nullable },
    h("option", { value: "" }, empty), ...options);
  const at = choices.findIndex((value) => value === start.value);
  select.value = start.typed ?? (at < 0 || start.value === undefined ? "" : String(at));
  const read = () => (select.value === "" ? (asked.nullable ? null : undefined) : choices[select.value]);
  return { element: select, typed: () => select.value, read };
}

function list(asked, id, start) {
  const rows = h("div", { class: "items" });
  const many = [];
  const item = { ...asked.item, name: asked.name, given: asked.item.schema, required: true };
  const add = (from) => {
    const control = CONTROLS[item.kind](item, `${id}-${made += 1}`, from);
    control.element.setAttribute("aria-label", `${asked.name}, one value`);
    const gone = h("button", { type: "button", class: "btn quiet", "aria-label": `Remove this ${asked.name}`,
      on: { click: () => {
        many.splice(many.indexOf(control), 1);
        row.remove();
        more.focus();
        more.dispatchEvent(new Event("input", { bubbles: true }));
      } } }, h("span", null, "Remove"));
    const row = h("div", { class: "item" }, control.element, gone);
    many.push(control);
    rows.append(row);
    return control.element;
  };
  const more = h("button", { type: "button", class: "btn", id, on: { click: () => add({}).focus() } }, h("span", null, "Add a value"));
  for (const typed of start.typed ?? []) add({ typed });
  if (start.typed === undefined) for (const value of start.value ?? []) add({ value });
  const nothing = start.value === null || (asked.nullable && start.value === undefined) ? null : [];
  return {
    element: h("div", null, rows, more),
    main: more,
    typed: () => many.map((each) => each.typed()),
    read: () => (many.length ? many.map((each) => each.read()) : nothing),
  };
}

function json(asked, id, start) {
  const area = h("textarea", { id, name: asked.name, rows: 4, class: "code", required: asked.required || null,
    autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const empty = start.value === undefined || (start.value === null && !asked.required);
  area.value = start.typed ?? (empty ? "" : JSON.stringify(start.value, null, 1));
  const judge = () => {
    try {
      if (area.value.trim()) JSON.parse(area.value);
      area.setCustomValidity("");
    } catch (error) {
      area.setCustomValidity(`This is no JSON: ${error.message}`);
    }
  };
  area.addEventListener("input", judge);
  judge();
  const read = () => (area.value.trim() ? JSON.parse(area.value) : asked.nullable ? null : undefined);
  return { element: area, typed: () => area.value, read };
}
