// Command greet says hello.
package main

import (
	"fmt"

	"github.com/example/polyglot/go/core"
	"github.com/example/polyglot/go/text/v2"
)

func main() { fmt.Println(text.Greeting(), "("+core.Name+")") }
