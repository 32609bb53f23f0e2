module.exports = { accent: "#0b7285", space: 4 };
