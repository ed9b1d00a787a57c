package provision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The explorer holds the whole world in comparable states, so the protocol may hide nothing from it.
var allowed = []string{"context", "errors", "fmt", "slices", "strings", "time"}

// shape gives what breaks the rules in one file.
func shape(f *ast.File, fset *token.FileSet) (faults []string) {
	say := func(n ast.Node, what string) {
		faults = append(faults, fset.Position(n.Pos()).String()+": "+what)
	}
	for _, imp := range f.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(allowed, path) {
			say(imp, "import of "+path)
		}
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if !slices.Contains([]string{"codes", "whys"}, n.Name) && !strings.HasPrefix(n.Name, "Err") {
						say(n, "package variable "+n.Name)
					}
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n, "goroutine")
		case *ast.DeferStmt:
			say(n, "defer")
		case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			say(n, "channel")
		case *ast.MapType:
			say(n, "map: not comparable, and its order is random")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name != "Duration" {
				say(n, "time."+n.Sel.Name)
			}
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name != "Context" {
				say(n, "context."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}

func TestShape(t *testing.T) {
	fset := token.NewFileSet()
	pkgs, err := parser.ParseDir(fset, ".", func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, p := range pkgs {
		for _, f := range p.Files {
			files++
			for _, fault := range shape(f, fset) {
				t.Error(fault)
			}
		}
	}
	if files < 5 {
		t.Fatalf("read only %d files", files)
	}
}

func TestShapeBites(t *testing.T) {
	const bad = `package p
import ("sync"; "time"; "context")
var x int
func f(c chan int) { defer g(); go g(); select {}; time.Sleep(1); _ = time.Now(); context.WithCancel(nil); _ = map[string]int{} }`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "bad.go", bad, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(shape(f, fset)); got != 10 {
		t.Fatalf("found %d faults of 10: %v", got, shape(f, fset))
	}
}

func TestComparable(t *testing.T) {
	compare := func(a, b Memo) bool { return a == b } // does not compile otherwise
	if !compare(Begin("a", 1), Begin("a", 1)) {
		t.Fatal("equal memos differ")
	}
}
