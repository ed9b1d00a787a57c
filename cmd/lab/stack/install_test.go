package stack

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestParse(t *testing.T) {
	objects, err := Parse(fstest.MapFS{
		"2.yaml":   {Data: []byte("# a remark\n---\nkind: B\nmetadata: {name: b}\n---\nkind: C\nmetadata: {name: c}\n")},
		"1.yaml":   {Data: []byte("kind: A\nmetadata: {name: a}\n")},
		"note.txt": {Data: []byte("not YAML: at: all")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, o := range objects {
		got += o.GetKind() + o.GetName()
	}
	if got != "AaBbCc" {
		t.Errorf("objects are %s", got)
	}
	if _, err := Parse(fstest.MapFS{"bad.yaml": {Data: []byte("a: [")}}); err == nil {
		t.Error("broken YAML is no error")
	}
}

// TestExamples reads what "make run" applies.
func TestExamples(t *testing.T) {
	objects, err := Parse(os.DirFS("../../../examples"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	for _, kind := range []string{"BucketClass", "BucketAccessClass", "BucketClaim", "BucketAccess", "Bucket"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among the examples", kind)
		}
	}
}
