module example.com/acme/polyglot/go/core

go 1.22
