// Runs a test of another project with recorders in place of all that it imports: what is asked, and
// what the test expects of the answer, comes out as JSON. Nothing of what is tested is executed.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [, , amaro, test, ...given] = process.argv;
const { transformSync } = require(path.resolve(amaro, "dist/index.js"));
// Modules that are read in place of a recorder: SPECIFIER=PATH.
const real = Object.fromEntries(given.map((each) => each.split("=")));
const RECORDED = Symbol("recorded");
const found = [];
const calls = [];
const ENDS = new Set(["null", "undefined", "true", "false", "ok", "empty"]);

function record(from) {
  return new Proxy(function () {}, {
    get(_, key) {
      if (key === RECORDED) return from;
      if (key === Symbol.iterator) {
        return function* () {
          for (let at = 0; at < 5; at++) yield record({ ...from, path: [...from.path, String(at)] });
        };
      }
      if (key === Symbol.toPrimitive) return () => "recorded";
      if (key === "then" || typeof key === "symbol") return undefined;
      return record({ ...from, path: [...from.path, key] });
    },
    set: () => true,
    apply: (_, self, args) => findNamed(from, args) ?? call(from, args),
    construct: (_, args) => call(from, args),
  });
}

// The element that `find` is to find by its name, or its message.
function findNamed(from, args) {
  const named = /\b(?:name|bareMessage)\s*===?\s*["'`]([^"'`]+)["'`]/.exec(typeof args[0] === "function" ? args[0] : "");
  if (from.path?.at(-1) !== "find" || !from.call || !named) return undefined;
  return record({ ...from, path: [...from.path.slice(0, -1), `=${named[1]}`] });
}

function call(on, args) {
  const made = { call: on, args: args.map((each) => plain(each)), path: [] };
  calls.push(made);
  return record(made);
}

function plain(value, depth = 0) {
  if (value === undefined) return { undefined: true };
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value;
  if (value[RECORDED]) return { recorded: value[RECORDED] };
  if (typeof value === "function" || depth > 12) return { function: true };
  if (Object.prototype.toString.call(value) === "[object RegExp]") return { pattern: value.source };
  if (Array.isArray(value)) return value.map((each) => plain(each, depth + 1));
  if (typeof value === "object") {
    if (typeof value.next === "function") return [...value].map((each) => plain(each, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, plain(each, depth + 1)]),
    );
  }
  return String(value);
}

function expect(subject) {
  let said = plain(subject);
  if (typeof subject === "function" && !subject[RECORDED]) {
    const before = calls.length;
    try {
      subject();
    } catch {}
    said = { recorded: calls[before] ?? null };
  }
  const matcher = (chain) =>
    new Proxy(function () {}, {
      get(_, key) {
        if (typeof key === "symbol" || key === "then") return undefined;
        if (ENDS.has(key)) found.push({ test: title, subject: said, chain: [...chain, key], args: [] });
        return matcher([...chain, key]);
      },
      apply(_, self, args) {
        found.push({ test: title, subject: said, chain, args: args.map((each) => plain(each)) });
        return matcher(chain);
      },
    });
  return matcher([]);
}

expect.objectContaining = (value) => ({ containing: value });
expect.any = expect.anything = expect.stringContaining = expect.stringMatching = () => ({ any: true });

// As ava has it.
const context = new Proxy(
  { context: {}, plan() {}, teardown() {} },
  {
    get: (own, key) =>
      own[key] ??
      ((subject, ...args) =>
        found.push({ test: title, subject: plain(subject), chain: [key], args: args.map((it) => plain(it)) })),
  },
);

let title = "";
const tests = [];
let hooks = [];
let names = [];

function describe(name, body) {
  const before = [names, hooks];
  names = [...names, name];
  body();
  [names, hooks] = before;
}

function it(name, body) {
  if (typeof body !== "function") return;
  tests.push({ name: [...names, name].join(" > "), body, hooks: () => hooks_of });
  const hooks_of = hooks;
}
const hook = (body) => (hooks = [...hooks, body]);
for (const each of [describe, it]) {
  each.each = (rows) => (name, body) =>
    [...rows].forEach((row, at) =>
      each(`${name}#${at}`, () => body(...(Array.isArray(row) ? row : [row]))),
    );
  each.only = each;
  each.skip = each.todo = () => {};
  each.concurrent = each;
}
Object.assign(it, { beforeEach: hook, afterEach() {}, before: hook, after() {}, serial: it });

function outdent(strings, ...values) {
  const text = String.raw({ raw: strings.raw.map((each) => each.replace(/\\`/g, "`")) }, ...values);
  const lines = text.split("\n");
  const inner = lines.slice(1).filter((each) => each.trim());
  const indent = Math.min(...inner.map((each) => each.match(/^ */)[0].length));
  const rest = lines.slice(1).map((each) => each.slice(indent));
  return (lines[0] ? [lines[0], ...rest] : rest).join("\n").replace(/\n[ \t]*$/, "");
}

const own = {
  vitest: { describe, it, test: it, expect, beforeEach: hook, beforeAll: hook, afterEach() {}, afterAll() {} },
  mocha: { describe, it, beforeEach: hook, before: hook, afterEach() {}, after() {} },
  chai: { expect },
  ava: { default: it },
  outdent: { outdent, default: outdent },
  "node:fs": { readFileSync: fs.readFileSync, existsSync: fs.existsSync },
  "node:path": path,
};
own.fs = { ...own["node:fs"], default: own["node:fs"] };
own.path = { ...path, default: path };
own["node:path"] = own.path;

function load(file) {
  const source = transformSync(fs.readFileSync(file, "utf8"), { mode: "transform" }).code;
  const exported = {};
  const code = source
    .replace(
      /^import\s+(?:([\w$]+)\s*,?\s*)?(?:\{([^}]*)\}|\*\s+as\s+([\w$]+))?\s*(?:from\s*)?(["'])(.+?)\4(?:\s+with\s+\{[^}]*\})?;?/gm,
      (_, one, several, all, __, from) =>
        [
          one && `const ${one} = __import(${JSON.stringify(from)}).default;`,
          several && `const {${several.replace(/\bas\b/g, ":")}} = __import(${JSON.stringify(from)});`,
          all && `const ${all} = __import(${JSON.stringify(from)});`,
        ].join(""),
    )
    .replace(/^export\s+((?:async\s+)?(?:function\*?|class|const|let)\s+([\w$]+))/gm, (_, it, name) => {
      exported[name] = true;
      return it;
    })
    .replace(/^export\s+(?:default\s+|\{[^}]*\};?)/gm, "");
  const tail = Object.keys(exported).map((name) => `__exports.${name} = ${name};`).join("");
  const run = vm.compileFunction(
    `return (async () => { ${code}\n${tail} })()`,
    ["__import", "__exports", "__dirname", "process", "require"],
    { filename: file },
  );
  const made = {};
  const finished = run((from) => find(from, file), made, path.dirname(file), { cwd: () => "/", env: {} }, () => record({ name: "require", path: [] }));
  finished.catch((error) => process.stderr.write(`${file}: ${error}\n`));
  return [made, finished];
}

function find(from, file) {
  const unknown = record({ name: from, path: [] });
  if (from in real) return real[from].endsWith(".ts") ? load(real[from])[0] : require(path.resolve(real[from]));
  if (own[from]) return new Proxy(own[from], { get: (it, key) => it[key] ?? unknown[key] });
  return unknown;
}

(async () => {
  await load(test)[1];
  for (const each of tests) {
    title = each.name;
    try {
      for (const before of each.hooks()) await before(context);
      await each.body(context);
    } catch (error) {
      found.push({ test: title, subject: null, chain: ["failed"], args: [String(error)] });
    }
  }
  fs.writeSync(1, JSON.stringify(found));
})();
