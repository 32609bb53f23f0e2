module github.com/example/polyglot/go/text/v2

go 1.22

require github.com/example/polyglot/go/core v0.0.0 // whatever version this workspace has

replace github.com/example/polyglot/go/core => ../../core
