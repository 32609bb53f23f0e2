// What a build would do: write a file that only the published package holds.
const { writeFileSync } = require('node:fs');
const { version } = require('./package.json');

writeFileSync('stamp.json', JSON.stringify({ version }) + '\n');
