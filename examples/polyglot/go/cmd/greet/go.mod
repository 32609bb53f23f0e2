module github.com/example/polyglot/go/cmd/greet

go 1.22

require (
	github.com/example/polyglot/go/core v0.0.0
	github.com/example/polyglot/go/text/v2 v2.0.0
)

replace (
	github.com/example/polyglot/go/core => ../../core
	github.com/example/polyglot/go/text/v2 => ../../text/v2
)
