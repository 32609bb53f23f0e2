#!/usr/bin/env node
const { heading } = require('@acme/format');

console.log(heading('hello'));
