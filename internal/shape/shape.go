// Package shape is for the tests of the protocol packages: it reads their syntax trees and says what is hidden from an
// explorer that holds the whole world in comparable states.
package shape

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// imports are the packages that a protocol may use.
var imports = []string{"context", "errors", "fmt", "slices", "strings", "time"}

// Dir gives what breaks the rules in the files of a folder, tests aside, and how many files it has read. Package
// variables are ruled out but for errors and the tables named.
func Dir(dir string, tables ...string) (faults []string, files int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("read the shape of %s: %w", dir, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, files, fmt.Errorf("read the shape of %s: %w", dir, err)
		}
		more, err := Source(e.Name(), string(text), tables...)
		if err != nil {
			return nil, files, err
		}
		faults = append(faults, more...)
		files++
	}
	return faults, files, nil
}

// Source gives what breaks the rules in one file.
func Source(name, text string, tables ...string) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return nil, fmt.Errorf("read the shape of %s: %w", name, err)
	}
	c := check{fset: fset}
	for _, imp := range f.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(imports, path) {
			c.say(imp, "import of "+path)
		}
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			c.variables(g, tables)
		}
	}
	ast.Inspect(f, c.node)
	return c.faults, nil
}

type check struct {
	fset   *token.FileSet
	faults []string
}

func (c *check) say(n ast.Node, what string) {
	c.faults = append(c.faults, c.fset.Position(n.Pos()).String()+": "+what)
}

func (c *check) variables(g *ast.GenDecl, tables []string) {
	for _, s := range g.Specs {
		for _, n := range s.(*ast.ValueSpec).Names {
			if !slices.Contains(tables, n.Name) && !strings.HasPrefix(n.Name, "Err") {
				c.say(n, "package variable "+n.Name)
			}
		}
	}
}

func (c *check) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.say(n, "goroutine")
	case *ast.DeferStmt:
		c.say(n, "defer")
	case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		c.say(n, "channel")
	case *ast.MapType:
		c.say(n, "map: not comparable, and its order is random")
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if ok && (x.Name == "time" && n.Sel.Name != "Duration" || x.Name == "context" && n.Sel.Name != "Context") {
			c.say(n, x.Name+"."+n.Sel.Name)
		}
	}
	return true
}
