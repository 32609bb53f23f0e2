// Package text makes sentences.
package text

import "example.com/acme/polyglot/go/core"

// Greeting is a friendly line.
func Greeting() string { return "hello from " + core.Name }
