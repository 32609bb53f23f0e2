// Reads calls out of JavaScript and TypeScript, and what their arguments evaluate to, without
// running the file: `const` before a call whose values are literals count, nothing else does.
// stdin: {"files": [...], "calls": [...], "keys": [...]}, keys of literals or names of values; stdout: for each file its events, in
// order: {"test", "line", "call", "args", "tail"}, where what is not known is {"$": "unknown"}.

'use strict'

const fs = require('node:fs')
const path = require('node:path').posix
const vm = require('node:vm')

const UNKNOWN = { $: 'unknown' }
const MOST_DEPTH = 40
const TAIL_CHARS = 60

// The same length, with blanks in place of what is in strings, comments and regular expressions.
function mask (text) {
  const out = [...Array(text.length)].map((_, at) => text[at])
  const blank = (from, to) => {
    for (let at = from; at < to; at++) out[at] = ' '
  }
  let last = '\n'
  let word = ''
  for (let at = 0; at < text.length; at++) {
    const it = text[at]
    const two = text.slice(at, at + 2)
    if (two === '//') {
      const end = text.indexOf('\n', at)
      blank(at, end < 0 ? text.length : end)
      at = (end < 0 ? text.length : end) - 1
    } else if (two === '/*') {
      const end = text.indexOf('*/', at + 2) + 2
      blank(at, end)
      at = end - 1
    } else if (it === '"' || it === "'" || it === '`') {
      const end = endOfString(text, at)
      blank(at + 1, end)
      at = end
      last = it
    } else if (it === '/' && ('(,=:[!&|?{};\n'.includes(last) || word === 'return')) {
      let end = at + 1
      for (let within = false; end < text.length && (within || text[end] !== '/'); end++) {
        if (text[end] === '\\') end++
        else if (text[end] === '[') within = true
        else if (text[end] === ']') within = false
      }
      blank(at + 1, end)
      at = end
      last = '/'
    } else if (!/\s/.test(it)) {
      word = /\w/.test(it) ? (/\w/.test(text[at - 1] || ' ') ? word : '') + it : ''
      last = it
    }
  }
  return out.join('')
}

function endOfString (text, from) {
  const quote = text[from]
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === quote) return at
    else if (quote === '`' && text.startsWith('${', at)) {
      let depth = 1
      for (at += 2; at < text.length && depth; at++) {
        if (text[at] === '{') depth++
        else if (text[at] === '}') depth--
        else if (text[at] === '`' || text[at] === "'" || text[at] === '"') at = endOfString(text, at)
      }
      at--
    }
  }
  return text.length
}

// Where the brackets that are open at `from` close, or a sign of `ends` stands between them.
function endOf (masked, from, ends) {
  let depth = 0
  for (let at = from; at < masked.length; at++) {
    if (!depth && ends.includes(masked[at])) return at
    if ('([{'.includes(masked[at])) depth++
    else if (')]}'.includes(masked[at]) && --depth < 0) return at
  }
  return masked.length
}

function parts (text, masked, from, to) {
  const found = []
  for (let at = from; at < to;) {
    const end = Math.min(endOf(masked, at, ','), to)
    if (text.slice(at, end).trim()) found.push(text.slice(at, end))
    at = end + 1
  }
  return found
}

const fixture = (kind, content) => ({ $: kind, content })
// What tests import.
const GIVEN = {
  path,
  join: path.join,
  resolve: path.join,
  t: { fixture, testdir: () => '.' },
  fixture,
  process: { cwd: () => '.', platform: 'linux', version: 'v20.0.0', versions: {}, env: {} },
  Buffer: { from: (content) => content },
  os: { EOL: '\n', homedir: () => '/home/user' },
  EOL: '\n',
}

function makeContext () {
  return vm.createContext({ ...GIVEN }, { codeGeneration: { strings: false, wasm: false } })
}

function evaluate (context, text) {
  const options = { timeout: 1000 }
  try {
    return vm.runInContext(`(${text}\n)`, context, options)
  } catch (error) {
    if (error.name !== 'SyntaxError') throw error
    // What TypeScript adds to an expression.
    const plain = text.replace(/\s+(?:as|satisfies)\s+(?:const|unknown as \w+|[A-Za-z_][\w.]*(?:<[^()]*?>)?(?:\s*&\s*\{[^{}]*\})?(?:\[\])*)/g, '')
    return vm.runInContext(`(${plain}\n)`, context, options)
  }
}

// What JSON can say of it.
function plain (value, depth = 0) {
  if (depth > MOST_DEPTH || typeof value === 'function' || typeof value === 'symbol') return UNKNOWN
  if (typeof value === 'bigint' || (typeof value === 'number' && !isFinite(value))) return UNKNOWN
  if (value === undefined) return { $: 'undefined' }
  if (Array.isArray(value)) return Array.from(value, (each) => plain(each, depth + 1))
  if (value && typeof value === 'object') {
    if (Object.prototype.toString.call(value) !== '[object Object]') return UNKNOWN
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each, depth + 1)]))
  }
  return value
}

function evaluated (context, text) {
  try {
    return plain(evaluate(context, text))
  } catch {
    return UNKNOWN
  }
}

function lineOf (text, at) {
  return text.slice(0, at).split('\n').length
}

function read (file, calls, keys) {
  const text = fs.readFileSync(file, 'utf8')
  const masked = mask(text)
  const context = makeContext()
  const names = calls.map((name) => name.replace(/\./g, '\\.')).join('|') || '(?!)'
  const steps = [
    ...[...masked.matchAll(/(?<![\w$])(?:[\w$]+\.)?(?:test|it)(?:\.\w+)*\(\s*["'`]/g)].map((it) => ({ at: it.index, it, kind: 'test' })),
    ...[...masked.matchAll(/(?<![\w$.])(?:const|let|var)\s+([\w$]+)(?:\s*:[^=;\n]*?(?:\{[^{}]*\}[^=;\n]*?)?)?\s*=(?![=>])\s*/g)].map((it) => ({ at: it.index, it, kind: 'const' })),
    ...[...masked.matchAll(/(?<![\w$])module\.exports\s*=(?!=)\s*/g)].map((it) => ({ at: it.index, it, kind: 'exports' })),
    ...[...masked.matchAll(new RegExp(`(?<![\\w$])(?:[\\w$]+\\.)*?(${names})\\s*(?:<[^()]*?>)?\\(`, 'g'))].map((it) => ({ at: it.index, it, kind: 'call' })),
    ...[...masked.matchAll(new RegExp(`(?<![\\w$.])(${keys.join('|') || '(?!)'})\\s*:\\s*`, 'g'))].map((it) => ({ at: it.index, it, kind: 'key' })),
  ].sort((a, b) => a.at - b.at)
  const events = []
  let test = ''
  for (const { at, it, kind } of steps) {
    const from = at + it[0].length
    if (kind === 'test') {
      test = text.slice(from, endOfString(text, from - 1))
      continue
    }
    if (kind === 'const') {
      // To the end of the line on which its brackets have closed.
      const end = endOf(masked, from, ';\n')
      try {
        const value = context[it[1]] = evaluate(context, text.slice(from, end))
        if (keys.includes(it[1])) {
          events.push({ test, line: lineOf(text, at), call: it[1], args: [plain(value)], tail: '' })
        }
      } catch {
        if (!(it[1] in GIVEN)) Reflect.deleteProperty(context, it[1])
      }
      continue
    }
    const event = { test, line: lineOf(text, at), call: it[1] || 'exports', tail: '' }
    if (kind === 'call') {
      const end = endOf(masked, from, ')')
      event.args = parts(text, masked, from, end).map((each) => evaluated(context, each))
      event.tail = text.slice(end + 1, end + 1 + TAIL_CHARS)
    } else {
      event.args = [evaluated(context, text.slice(from, endOf(masked, from, kind === 'key' ? ',' : ';')))]
    }
    events.push(event)
  }
  return events
}

// Of async functions that something calls.
process.on('unhandledRejection', () => {})

const { files, calls, keys } = JSON.parse(fs.readFileSync(0, 'utf8'))
process.stdout.write(JSON.stringify(files.map((file) => read(file, calls, keys))))
