// Package core is what all other modules need.
package core

// Name is how it is called.
const Name = "acme"
