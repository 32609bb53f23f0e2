// What golang.org/x/mod says of many questions at once: JSON comes in, and JSON goes out.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"os"
	"strconv"

	"archive/zip"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

func main() {
	in := json.NewDecoder(os.Stdin)
	var answers any
	switch os.Args[1] {
	case "tables":
		answers = readTables(os.Args[2:])
	case "mod":
		answers = answerEach(in, readMod)
	case "work":
		answers = answerEach(in, readWork)
	case "path":
		answers = answerEach(in, readPath)
	case "zip":
		answers = answerEach(in, readZip)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func answerEach[Q, A any](in *json.Decoder, answer func(Q) A) []A {
	var questions []Q
	if err := in.Decode(&questions); err != nil {
		log.Fatal(err)
	}
	answers := make([]A, 0, len(questions))
	for _, each := range questions {
		answers = append(answers, answer(each))
	}
	return answers
}

type mod struct {
	Error, Module, Go string
	Require, Replace  [][]string
	Retracted         map[string]bool
	Indirect          []string
	Use               []string
}

func readMod(text string) mod {
	file, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		return mod{Error: err.Error()}
	}
	found := mod{Require: [][]string{}, Replace: replaced(file.Replace)}
	if file.Module != nil {
		found.Module = file.Module.Mod.Path
	}
	if file.Go != nil {
		found.Go = file.Go.Version
	}
	for _, each := range file.Require {
		found.Require = append(found.Require, []string{each.Mod.Path, each.Mod.Version})
		if each.Indirect {
			found.Indirect = append(found.Indirect, each.Mod.Path)
		}
	}
	found.Retracted = retracted(file.Retract)
	return found
}

// Of versions at both ends of each interval, next to them, and between them, which are retracted.
// https://go.dev/ref/mod#go-mod-file-retract
func retracted(all []*modfile.Retract) map[string]bool {
	found := map[string]bool{}
	for _, each := range all {
		var low, high [3]int
		fmt.Sscanf(each.Low, "v%d.%d.%d", &low[0], &low[1], &low[2])
		fmt.Sscanf(each.High, "v%d.%d.%d", &high[0], &high[1], &high[2])
		tried := []string{each.Low, each.High}
		for _, end := range [][3]int{low, high} {
			core := fmt.Sprintf("v%d.%d.%d", end[0], end[1], end[2])
			after := fmt.Sprintf("v%d.%d.%d", end[0], end[1], end[2]+1)
			tried = append(tried, core, core+"-0", after, fmt.Sprintf("v%d.%d.%d", end[0], end[1]+1, 0))
		}
		middle := [3]int{(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2}
		tried = append(tried, fmt.Sprintf("v%d.%d.%d", middle[0], middle[1], middle[2]))
		for _, version := range tried {
			for _, other := range all {
				if semver.IsValid(version) && semver.IsValid(other.Low) && semver.IsValid(other.High) {
					isIn := semver.Compare(other.Low, version) <= 0 && semver.Compare(version, other.High) <= 0
					found[version] = found[version] || isIn
				}
			}
		}
	}
	return found
}

func readWork(text string) mod {
	file, err := modfile.ParseWork("go.work", []byte(text), nil)
	if err != nil {
		return mod{Error: err.Error()}
	}
	found := mod{Replace: replaced(file.Replace), Use: []string{}}
	for _, each := range file.Use {
		found.Use = append(found.Use, each.Path)
	}
	return found
}

func replaced(replaces []*modfile.Replace) [][]string {
	found := [][]string{}
	for _, each := range replaces {
		found = append(found, []string{each.Old.Path, each.New.Path})
	}
	return found
}

// Why no module has this path; empty where one may.
func readPath(path string) string {
	if err := module.CheckPath(path); err != nil {
		return err.Error()
	}
	return ""
}

type question struct{ Root, Revision, Below, Path, Version string }

type archive struct {
	Error, H1 string
	Files     map[string]string
}

// https://pkg.go.dev/golang.org/x/mod/zip#CreateFromVCS, which adds no licence of the repository:
// https://go.dev/ref/mod#vcs-license
func readZip(asked question) archive {
	var packed bytes.Buffer
	named := module.Version{Path: asked.Path, Version: asked.Version}
	err := modzip.CreateFromVCS(&packed, named, asked.Root, asked.Revision, asked.Below)
	if err != nil {
		return archive{Error: err.Error()}
	}
	opened, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		log.Fatal(err)
	}
	var names []string
	files := map[string]string{}
	for _, each := range opened.File {
		content, err := each.Open()
		if err != nil {
			log.Fatal(err)
		}
		digest := sha256.New()
		if _, err := io.Copy(digest, content); err != nil {
			log.Fatal(err)
		}
		names = append(names, each.Name)
		files[each.Name] = hex.EncodeToString(digest.Sum(nil))
	}
	h1, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return opened.Open(name) })
	if err != nil {
		log.Fatal(err)
	}
	return archive{H1: h1, Files: files}
}

// The rows of each list of literals, by the name of its variable, or of the function it stands in.
func readTables(paths []string) map[string][][]any {
	found := map[string][][]any{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			log.Fatal(err)
		}
		function := ""
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				function = node.Name.Name
			case *ast.ValueSpec:
				if len(node.Values) == 1 {
					addRows(found, node.Names[0].Name, node.Values[0])
				}
			case *ast.AssignStmt, *ast.RangeStmt:
				ast.Inspect(node, func(inner ast.Node) bool {
					if inner, ok := inner.(*ast.CompositeLit); ok {
						addRows(found, function, inner)
						return false
					}
					return true
				})
			}
			return true
		})
	}
	return found
}

func addRows(found map[string][][]any, name string, value ast.Expr) {
	list, ok := value.(*ast.CompositeLit)
	if !ok {
		return
	}
	if _, ok := list.Type.(*ast.ArrayType); !ok || len(list.Elts) == 0 || found[name] != nil {
		return
	}
	for _, each := range list.Elts {
		row, ok := literal(each).([]any)
		if !ok {
			row = []any{literal(each)}
		}
		found[name] = append(found[name], row)
	}
}

// What is no literal is null. Bytes that are no UTF-8 are Latin-1, after a NUL.
func literal(node ast.Expr) any {
	switch node := node.(type) {
	case *ast.BasicLit:
		if node.Kind == token.STRING || node.Kind == token.CHAR {
			text, _ := strconv.Unquote(node.Value)
			if string([]rune(text)) == text {
				return text
			}
			latin := []rune{0}
			for _, each := range []byte(text) {
				latin = append(latin, rune(each))
			}
			return string(latin)
		}
		number, _ := strconv.ParseFloat(node.Value, 64)
		return number
	case *ast.Ident:
		return map[string]any{"true": true, "false": false}[node.Name]
	case *ast.BinaryExpr:
		left, right := literal(node.X), literal(node.Y)
		one, isText := left.(string)
		other, areTexts := right.(string)
		if isText && areTexts && node.Op == token.ADD {
			return one + other
		}
	case *ast.CallExpr:
		if len(node.Args) == 1 {
			if _, ok := node.Fun.(*ast.ArrayType); ok {
				return literal(node.Args[0])
			}
		}
	case *ast.KeyValueExpr:
		key, _ := node.Key.(*ast.Ident)
		if key != nil {
			return map[string]any{key.Name: literal(node.Value)}
		}
	case *ast.CompositeLit:
		found := []any{}
		for _, each := range node.Elts {
			found = append(found, literal(each))
		}
		return found
	}
	return nil
}
