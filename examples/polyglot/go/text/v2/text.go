// Package text makes sentences.
package text

import "github.com/example/polyglot/go/core"

// Greeting is a friendly line.
func Greeting() string { return "hello from " + core.Name }
