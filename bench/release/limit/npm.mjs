// The bare limit of an npm release: npm's own rules of what goes in, tar and gzip as npm sets them,
// and plain PUTs in dependency order, `slots` at once, on connections that stay open. No scripts, no
// bundled dependencies, no lookups, no journal, no retries. With LAG, the registry is asked for each
// package once, that many seconds after its upload, and before what needs it goes out.
//
// node npm.mjs NPM_MODULES ROOT REGISTRY SLOTS [LAG]
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

const [modules, root, registry, slots, lag] = process.argv.slice(2)
const require = createRequire(join(modules, 'index.js'))
const packlist = require('npm-packlist')
const tar = require('tar')
const agent = new http.Agent({ keepAlive: true })
const dated = new Date('1985-10-26T08:15:00.000Z')

const pack = async (path, manifest) => {
  const tree = { path, package: manifest, isProjectRoot: true, edgesOut: new Map(), children: new Map() }
  const files = await packlist(tree)
  const options = { cwd: path, prefix: 'package/', portable: true, gzip: { level: 9 }, mtime: dated }
  const parts = []
  for await (const part of tar.create(options, files.map(file => `./${file}`))) parts.push(part)
  return Buffer.concat(parts)
}

const send = (method, path, body = Buffer.of()) => new Promise((resolve, reject) => {
  const headers = { 'content-type': 'application/json', 'content-length': body.length, authorization: 'Bearer bench' }
  const request = http.request(`${registry}${path}`, { method, agent, headers }, response => {
    response.resume()
    response.on('end', () => response.statusCode < 300 ? resolve() : reject(new Error(`${path}: ${response.statusCode}`)))
  })
  request.on('error', reject)
  request.end(body)
})

const publish = async (manifest, data) => {
  const { name, version } = manifest
  const file = `${name}-${version}.tgz`
  const shasum = createHash('sha1').update(data).digest('hex')
  const integrity = `sha512-${createHash('sha512').update(data).digest('base64')}`
  const dist = { shasum, integrity, tarball: `${registry}${name}/-/${file}` }
  const attachment = { content_type: 'application/octet-stream', data: data.toString('base64'), length: data.length }
  await send('PUT', name.replace('/', '%2f'), Buffer.from(JSON.stringify({
    _id: name, name, 'dist-tags': { latest: version }, access: 'public',
    versions: { [version]: { ...manifest, _id: `${name}@${version}`, dist } },
    _attachments: { [file]: attachment },
  })))
}

const confirm = async ({ name, version }) => {
  if (lag === undefined) return
  await setTimeout(1000 * lag)
  await send('GET', `${name.replace('/', '%2f')}/${version}`)
}

const packages = readdirSync(join(root, 'packages')).map(name => join(root, 'packages', name))
const manifests = new Map(packages.map(path => {
  const manifest = JSON.parse(readFileSync(join(path, 'package.json')))
  return [manifest.name, { path, manifest }]
}))
const level = name => 1 + Math.max(0, ...Object.keys(manifests.get(name).manifest.dependencies).map(level))
const waiting = [...manifests.keys()].sort((a, b) => level(a) - level(b))
const packed = new Map()
const done = new Set()
let busy = 0

await new Promise((resolve, reject) => {
  const next = () => {
    if (done.size === manifests.size) return resolve()
    for (const name of [...waiting]) {
      if (busy >= Number(slots)) return
      const { manifest } = manifests.get(name)
      if (!packed.has(name) || Object.keys(manifest.dependencies).some(need => !done.has(need))) continue
      waiting.splice(waiting.indexOf(name), 1)
      busy++
      const upload = publish(manifest, packed.get(name)).then(() => { busy--; next() })
      upload.then(() => confirm(manifest)).then(() => { done.add(name); next() }).catch(reject)
    }
  }
  const packing = async () => {
    for (const name of [...waiting]) {
      const { path, manifest } = manifests.get(name)
      packed.set(name, await pack(path, manifest))
      next()
    }
  }
  packing().catch(reject)
})
agent.destroy()
