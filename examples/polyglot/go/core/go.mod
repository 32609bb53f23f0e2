module github.com/example/polyglot/go/core

go 1.22
