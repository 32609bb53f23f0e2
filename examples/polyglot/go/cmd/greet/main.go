// Command greet says hello.
package main

import (
	"fmt"

	"example.com/acme/polyglot/go/core"
	"example.com/acme/polyglot/go/text/v2"
)

func main() { fmt.Println(text.Greeting(), "("+core.Name+")") }
