module example.com/acme/polyglot/go/text/v2

go 1.22

require example.com/acme/polyglot/go/core v0.0.0 // whatever version this workspace has

replace example.com/acme/polyglot/go/core => ../../core
