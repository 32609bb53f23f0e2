// Runs in one node process for all packages of a run, and packs them as `npm publish` would: with
// the modules of the npm that is installed. A request is a line of JSON on stdin, its answer a line
// on stdout.

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const readline = require('node:readline')
const { createRequire } = require('node:module')

// Where npm's own modules are: beside the npm on PATH, or where node was installed with one.
// https://docs.npmjs.com/cli/configuring-npm/folders#global-installation
function npmRequire (npm) {
  const beside = path.dirname(process.execPath)
  const candidates = [
    ...(npm ? [fs.realpathSync(npm)] : []),
    path.join(beside, '..', 'lib', 'node_modules', 'npm', 'package.json'),
    path.join(beside, 'node_modules', 'npm', 'package.json'),
  ]
  for (const candidate of candidates) {
    const found = createRequire(candidate)
    try {
      found.resolve('npm-packlist')
      return { require: found, root: path.dirname(candidate) }
    } catch {
      continue
    }
  }
  throw new Error(`the modules of npm were not found, neither beside ${npm || 'node'} nor node`)
}

const npm = npmRequire(process.argv[2])
const Arborist = npm.require('@npmcli/arborist')
const pacote = npm.require('pacote')
const packlist = npm.require('npm-packlist')
const runScript = npm.require('@npmcli/run-script')
const tar = npm.require('tar')

// Since npm 9 a list of files comes from a tree: https://github.com/npm/npm-packlist/releases/tag/v6.0.0
const tooOld = parseInt(npm.require('npm-packlist/package.json').version, 10) < 6

// What `npm publish` runs before the upload, in its order.
// https://docs.npmjs.com/cli/using-npm/scripts#npm-publish
const BEFORE = ['prepublishOnly', 'prepack', 'prepare']

// A link in the place of a log is not followed. Windows has no such flag.
const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
const LOG_FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW

// Each request with a log of its own, which scripts write to.
async function answer (request) {
  if (tooOld) throw new Error('the npm on PATH is too old: 9 or later is needed')
  // A pipe that nobody reads any more would be waited for, with the locks of a run that is dead.
  const reader = fs.openSync(request.log, LOG_FLAGS | O_NONBLOCK)
  const log = fs.openSync(request.log, LOG_FLAGS)
  fs.closeSync(reader)
  const run = (event) => runIfDeclared(event, request, log)
  try {
    if (!request.events) return await pack(request, run)
    for (const event of request.events) await run(event)
    return {}
  } catch (error) {
    fs.writeSync(log, `${error.stack || error}\n`)
    throw error
  } finally {
    fs.closeSync(log)
  }
}

async function runIfDeclared (event, { directory, root, ignoreScripts }, log) {
  // To read it as npm does takes its time, and most packages have no scripts.
  const text = await fs.promises.readFile(path.join(directory, 'package.json'), 'utf8')
  if (ignoreScripts || !JSON.parse(text.replace(/^\uFEFF/, '')).scripts?.[event]) return
  const manifest = await read(directory)
  fs.writeSync(log, `> ${manifest.name}@${manifest.version} ${event}\n> ${manifest.scripts[event]}\n`)
  try {
    await runScript({
      event,
      path: directory,
      pkg: manifest,
      stdio: ['ignore', log, log],
      env: {
        INIT_CWD: root,
        npm_command: 'publish',
        npm_execpath: path.join(npm.root, 'npm-cli.js'),
        npm_node_execpath: process.execPath,
      },
    })
  } catch (error) {
    const absent = error.code === 127 ? ': a program that it starts is not on PATH' : ''
    const how = error.signal ? `was killed by ${error.signal}` : `ended with ${error.code}${absent}`
    throw new Error(`its ${event} script ${how}`)
  }
}

async function pack (request, run) {
  for (const event of BEFORE) await run(event)
  // The scripts may have made or changed it.
  const place = contentsOf(request)
  const manifest = await read(place)
  const tree = await new Arborist({ path: place }).loadActual()
  const files = await packlist(tree, {
    path: place,
    prefix: request.root,
    workspaces: request.workspaces,
  })
  const options = pacote.DirFetcher.tarCreateOptions(manifest)
  await tar.create({ ...options, cwd: place, file: request.into }, files)
  await run('postpack')
  return { name: manifest.name, version: manifest.version }
}

// https://pnpm.io/package_json#publishconfigdirectory
function contentsOf ({ directory, contents }) {
  if (!contents) return directory
  const place = path.join(directory, contents)
  if (!fs.existsSync(path.join(place, 'package.json'))) {
    throw new Error(`its publishConfig.directory, ${contents}, holds no package.json once its scripts have run`)
  }
  const found = fs.realpathSync(place)
  if (!found.startsWith(path.join(directory, path.sep))) {
    throw new Error(`its publishConfig.directory, ${contents}, leads out of the package, to ${found}`)
  }
  return found
}

function read (directory) {
  return pacote.manifest(`file:${directory}`, {
    Arborist,
    allowDirectory: 'all',
    _isRoot: true,
  })
}

const lines = readline.createInterface({ input: process.stdin })
lines.on('line', async (line) => {
  const request = JSON.parse(line)
  let said
  try {
    said = await answer(request)
  } catch (error) {
    said = { error: String(error.message || error) }
  }
  process.stdout.write(`${JSON.stringify({ ...said, id: request.id })}\n`)
})
lines.on('close', () => process.exit(0))
