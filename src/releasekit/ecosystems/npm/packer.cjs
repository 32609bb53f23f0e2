// Runs in one node process for all packages of a run, and packs them as `npm publish` would: with
// the modules of the npm that is installed. A request is a line of JSON on stdin, its answer a line
// on stdout.

'use strict'

const fs = require('node:fs')
const path = require('node:path')
const readline = require('node:readline')
const { createRequire } = require('node:module')

// Where npm's own modules are: with the npm on PATH, unless that is a shim, or where node was
// installed with one. Debian's node finds some of them, not all, from any place.
// https://docs.npmjs.com/cli/configuring-npm/folders#global-installation
function npmRequire (npm) {
  const beside = path.dirname(process.execPath)
  const candidates = [
    ...(npm ? [path.join(fs.realpathSync(npm), '..', '..')] : []),
    path.join(beside, '..', 'lib', 'node_modules', 'npm'),
    path.join(beside, '..', 'share', 'nodejs', 'npm'),
    path.join(beside, 'node_modules', 'npm'),
  ]
  for (const root of candidates) {
    const found = createRequire(path.join(root, 'package.json'))
    try {
      if (found('./package.json').name !== 'npm') continue
      found.resolve('npm-packlist')
      return { require: found, root }
    } catch {
      continue
    }
  }
  throw new Error(`the modules of npm were not found, neither beside ${npm || 'node'} nor node`)
}

const npm = npmRequire(process.argv[2])
const packlist = npm.require('npm-packlist')
const tar = npm.require('tar')

// Since npm 9 a list of files comes from a tree: https://github.com/npm/npm-packlist/releases/tag/v6.0.0
const tooOld = parseInt(npm.require('npm-packlist/package.json').version, 10) < 6

// What `npm publish` runs before the upload, in its order.
// https://docs.npmjs.com/cli/using-npm/scripts#npm-publish
const BEFORE = ['prepublishOnly', 'prepack', 'prepare']

const LICENSE = /^licen[cs]e(?:\..+)?$/i
// Anywhere in a path: https://github.com/pnpm/pnpm/blob/main/pnpm11/releasing/commands/src/publish/pack.ts
const LICENSE_OF_PNPM = /licen[cs]e/i

// What yarn packs nowhere: its settings, and what it installed or brought.
// https://github.com/yarnpkg/berry/blob/master/packages/plugin-pack/sources/packUtils.ts
const OF_YARN = [
  /(?:^|\/)\.yarnrc\.yml$/,
  /^\.pnp\.(?:cjs|data\.json|loader\.mjs)$/,
  /^\.yarn\/(?:(?:cache|releases|unplugged|__virtual__)\/|install-state\.gz$)/,
]

// What Bun packs nowhere, unless `files` names the very path of settings: https://bun.sh/docs/pm/cli/pm#pack and
// https://github.com/oven-sh/bun/blob/main/src/runtime/cli/pack_command.rs (DEFAULT_IGNORE_PATTERNS)
const OF_BUN = [/^bun\.lockb?$/, /(?:^|\/)(?:bunfig\.toml|\.env\.production)$/]

// What is tarred in one go: beside more than this, other packages get their turn.
const MAX_AT_ONCE = 1024 * 1024

// A link in the place of a log is not followed. Windows has no such flag.
const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
const LOG_FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW

class ScriptFailed extends Error {}

// Each request with a log of its own, which scripts write to. Without one, a package is packed that
// runs none; of any other, and of any trouble, it is only said that it takes a log.
async function answer (request) {
  if (tooOld) throw new Error('the npm on PATH is too old: 9 or later is needed')
  if (!request.log) return packQuietly(request).catch(() => ({ takesLog: true }))
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
    // Of a script that failed, its own output tells why.
    if (!(error instanceof ScriptFailed)) fs.writeSync(log, `${error.stack || error}\n`)
    throw error
  } finally {
    fs.closeSync(log)
  }
}

async function packQuietly (request) {
  const { directory, ignoreScripts } = request
  const scripts = (!ignoreScripts && declared(directory).scripts) || {}
  if ([...BEFORE, 'postpack'].some((event) => scripts[event])) return { takesLog: true }
  return pack(request, () => {})
}

function declared (directory) {
  const text = fs.readFileSync(path.join(directory, 'package.json'), 'utf8')
  return JSON.parse(text.replace(/^\uFEFF/, ''))
}

async function runIfDeclared (event, { directory, root, ignoreScripts }, log) {
  // To read it as npm does takes its time, and most packages have no scripts.
  if (ignoreScripts || !declared(directory).scripts?.[event]) return
  const manifest = await read(directory)
  fs.writeSync(log, `> ${manifest.name}@${manifest.version} ${event}\n> ${manifest.scripts[event]}\n`)
  try {
    await npm.require('@npmcli/run-script')({
      event,
      path: directory,
      pkg: manifest,
      stdio: ['ignore', log, log],
      env: {
        INIT_CWD: root,
        npm_command: 'publish',
        npm_execpath: path.join(npm.root, 'bin', 'npm-cli.js'),
        npm_node_execpath: process.execPath,
      },
    })
  } catch (error) {
    const absent = error.code === 127 ? ': a program that it starts is not on PATH' : ''
    const how = error.signal
      ? `was killed by ${error.signal}`
      : `failed with exit code ${error.code}${absent}`
    throw new ScriptFailed(`its ${event} script ${how}`)
  }
}

async function pack (request, run) {
  for (const event of BEFORE) await run(event)
  // The scripts may have made or changed it.
  const place = contentsOf(request)
  const manifest = await read(place)
  if ('patchedDependencies' in manifest) {
    await packAsNpm(request, place)
  } else {
    const tree = await treeOf(place, manifest)
    Object.assign(tree.package, entryPoints(request, place, tree.package))
    const packed = (await packlist(tree, listed(request, place))).filter(isInside)
    const files = packed.filter(withoutOwn(request, manifest))
    const given = await givenLicenses(request, files)
    // While other files wait, node-tar waits for an archive forever, or loses entries of it.
    // https://github.com/isaacs/node-tar/blob/main/src/pack.ts
    const sync = given.length > 0 || isSmall(place, files)
    const all = [...files, ...given.map((archive) => `@${archive}`)]
    const options = { ...tarOptions(manifest), cwd: place, file: request.into, sync }
    await tar.create(withExecutables(options, request, manifest), all)
    given.forEach((archive) => fs.unlinkSync(archive))
  }
  await run('postpack')
  return { name: manifest.name, version: manifest.version }
}

// The settings of the tool, which may hold a token, and what it made for itself.
function withoutOwn ({ tool }, { files }) {
  const never = { yarn: OF_YARN, bun: OF_BUN }[tool] || []
  const isNamed = tool === 'bun' && Array.isArray(files)
    ? (file) => file !== 'bun.lock' && files.some((name) => path.posix.join('/', `${name}`) === `/${file}`)
    : () => false
  return (file) => isNamed(file) || !never.some((each) => each.test(file))
}

// Files that pnpm and yarn pack whatever `files` says, and npm only where they do not begin with "./".
// https://github.com/pnpm/pnpm/blob/main/pnpm11/fs/packlist/src/index.ts,
// https://github.com/yarnpkg/berry/blob/master/packages/plugin-pack/sources/packUtils.ts
function entryPoints ({ tool }, place, { main, browser, bin, module, files }) {
  if (!['pnpm', 'yarn'].includes(tool) || !Array.isArray(files)) return {}
  const named = [main, browser, ...Object.values(bin || {}), ...(tool === 'yarn' ? [module] : [])]
  const isFile = (name) => typeof name === 'string' && isInside(name) &&
    fs.lstatSync(path.join(place, name), { throwIfNoEntry: false })?.isFile()
  return { files: [...files, ...named.filter(isFile).map((name) => path.posix.join('/', name))] }
}

// The programs too, also in Bun: https://pnpm.io/package_json#publishconfigexecutablefiles and
// https://yarnpkg.com/configuration/manifest#publishConfig.executableFiles
function withExecutables (options, { tool }, { bin, publishConfig }) {
  if (!['pnpm', 'yarn', 'bun'].includes(tool)) return options
  const files = tool !== 'bun' && publishConfig?.executableFiles
  const listed = [...Object.values(bin || {}), ...(Array.isArray(files) ? files : [])]
  const names = new Set(listed.map((name) => path.posix.normalize(String(name))))
  const filter = (file, stat) => {
    if (names.has(path.posix.normalize(file))) stat.mode |= 0o111
    return options.filter(file, stat)
  }
  return { ...options, filter }
}

// Where node_modules has links, what a bundled package needs is listed by its own place, and nobody
// unpacks that: https://github.com/isaacs/node-tar/blob/main/src/unpack.ts (checkPath)
function isInside (file) {
  return !file.split(/[\\/]/).includes('..')
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

// Which rules of the workspace hold for a package depends on whether it is a member, and for its
// root on all of them.
function listed ({ root, workspaces }, place) {
  return { path: place, prefix: root, workspaces }
}

// What npm-packlist reads of a tree is the manifest, and where bundled packages and workspaces are:
// only for these two it takes a look at what is installed.
// https://github.com/npm/npm-packlist/blob/main/lib/index.js
function treeOf (place, manifest) {
  const { bundleDependencies, workspaces } = manifest
  if (bundleDependencies?.length || workspaces || fs.realpathSync.native(place) !== place) {
    return new (npm.require('@npmcli/arborist'))({ path: place }).loadActual()
  }
  return { path: place, package: manifest, isProjectRoot: true, edgesOut: new Map(), workspaces: null }
}

// From npm 12 on, such a manifest is not packed as it is.
// https://github.com/npm/pacote/blob/main/lib/dir.js
async function packAsNpm (request, place) {
  const data = await npm.require('pacote').tarball(`file:${place}`, {
    Arborist: npm.require('@npmcli/arborist'),
    allowDirectory: 'all',
    ignoreScripts: true,
    ...listed(request, place),
  })
  fs.writeFileSync(request.into, data)
}

// Those of the workspace, for a package that has none. What is outside of `cwd` gets into a tarball
// by way of an archive: https://github.com/isaacs/node-tar#tarcreateoptions-filelist-callback-alias-tarc
async function givenLicenses ({ root, licenses, into, tool }, files) {
  const isLicense = tool === 'pnpm'
    ? (file) => LICENSE_OF_PNPM.test(file)
    : (file) => LICENSE.test(path.basename(file))
  if (!licenses.length || files.some(isLicense)) return []
  const archive = `${into}.licenses`
  await tar.create({ cwd: root, file: archive, portable: true }, licenses)
  return [archive]
}

function isSmall (place, files) {
  let size = 0
  for (const file of files) size += fs.lstatSync(path.join(place, file)).size
  return size <= MAX_AT_ONCE
}

// The part of pacote that says how to tar: all of it takes 0.1 s to load.
const tarOptions = (() => {
  try {
    return npm.require('pacote/lib/util/tar-create-options.js')
  } catch {
    return npm.require('pacote').DirFetcher.tarCreateOptions
  }
})()

// As pacote reads a package.json: https://github.com/npm/pacote/blob/main/lib/fetcher.js
const read = (() => {
  const { dependencies } = npm.require('pacote/package.json')
  if ('read-package-json-fast' in dependencies) {
    const readFast = npm.require('read-package-json-fast')
    return (directory) => readFast(path.join(directory, 'package.json'))
  }
  const PackageJson = npm.require('@npmcli/package-json')
  return async (directory) => (await PackageJson.normalize(directory)).content
})()

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
