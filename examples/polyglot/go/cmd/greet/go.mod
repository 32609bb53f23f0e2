module example.com/acme/polyglot/go/cmd/greet

go 1.22

require (
	example.com/acme/polyglot/go/core v0.0.0
	example.com/acme/polyglot/go/text/v2 v2.0.0
)

replace (
	example.com/acme/polyglot/go/core => ../../core
	example.com/acme/polyglot/go/text/v2 => ../../text/v2
)
