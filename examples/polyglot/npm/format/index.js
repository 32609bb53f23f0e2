const { accent } = require('@acme/tokens');

exports.heading = (text) => `[${accent}] ${text}`;
