// What modules of the npm on PATH say. stdin: {"what", …}, stdout: JSON.

'use strict'

const fs = require('node:fs')
const { execFileSync } = require('node:child_process')
const { createRequire } = require('node:module')

const which = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
const npm = createRequire(fs.realpathSync(which))

const ANSWERS = {
  // The types of https://github.com/npm/npm-package-arg#result-object, or "invalid".
  specs ({ specs }) {
    const npa = npm('npm-package-arg')
    return specs.map((spec) => {
      try {
        const found = npa.resolve('foo', spec, '/there')
        return found.type === 'alias' ? found.subSpec.type : found.type
      } catch {
        return 'invalid'
      }
    })
  },
  versions ({ versions }) {
    const semver = npm('semver')
    return versions.map((version) => semver.clean(version, { loose: true }))
  },
}

const asked = JSON.parse(fs.readFileSync(0, 'utf8'))
Promise.resolve(ANSWERS[asked.what](asked)).then(
  (answer) => process.stdout.write(JSON.stringify(answer)),
  (error) => {
    process.stderr.write(`${error.code}: ${error.message}\n`)
    process.exitCode = 1
  }
)
