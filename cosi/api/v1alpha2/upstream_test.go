package v1alpha2_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/custody-storage/custody/api/apitest"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Manifests in the form of upstream's examples are stored whole: with strict field
// validation a field that our definitions lack is an error.
func TestUpstreamManifestsApply(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			object, err := apitest.Parse(string(document))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			t.Run(filepath.Base(file)+"/"+object.GetKind()+"/"+object.GetName(), func(t *testing.T) {
				client := server.Objects(t, object)
				strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
				stored, err := client.Create(t.Context(), object, strict)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(object.Object["spec"], stored.Object["spec"]); diff != "" {
					t.Errorf("the stored spec differs from the manifest (-manifest +stored):\n%s", diff)
				}

				// A control: the same object with a field that nobody knows is refused.
				unknown := object.DeepCopy()
				unknown.SetName(server.Name())
				if err := unstructured.SetNestedField(unknown.Object, "x", "spec", "unheardOf"); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Create(t.Context(), unknown, strict); err == nil || !strings.Contains(err.Error(), "unheardOf") {
					t.Errorf("an unknown field must be refused by name, but the answer is: %v", err)
				}
			})
		}
	}
}

// fullStatuses are objects with every status field set. A field that is added later
// and left out here fails the test.
func fullStatuses() []runtime.Object {
	yes := true
	protocols := []cosi.ObjectProtocol{cosi.ProtocolS3}
	failed := cosi.NewError(time.Unix(1772704800, 0), "DriverDown", "no answer")
	return []runtime.Object{
		&cosi.BucketClaim{Status: cosi.BucketClaimStatus{
			ReadyToUse: &yes, BoundBucketName: "bc-1", Protocols: protocols, Error: failed,
		}},
		&cosi.Bucket{Status: cosi.BucketStatus{
			ReadyToUse: &yes, BucketID: "b1", Protocols: protocols,
			BucketInfo: map[string]string{cosi.KeyS3BucketID: "b1"}, Error: failed,
		}},
		&cosi.BucketAccess{Status: cosi.BucketAccessStatus{
			ReadyToUse: &yes, AccountID: "a1",
			AccessedBuckets: []cosi.AccessedBucket{{BucketName: "bc-1", BucketID: "b1", BucketClaimName: "pictures"}},
			DriverName:      "s3.example.com", AuthenticationType: cosi.AuthenticationTypeKey,
			Parameters: map[string]string{"tier": "hot"}, Error: failed,
		}},
	}
}

// On definitions that have upstream's status fields and no others, everything we
// write to a status is stored. The definitions here are made from the list of
// upstream's fields; they stand under a group of their own, so that they can be
// installed beside ours.
func TestNoStatusFieldIsPrunedByUpstream(t *testing.T) {
	const group = "lookalike.custody.dev"
	for kind, schema := range upstreamStatuses(t) {
		if err := server.Install(t.Context(), lookalike(t, group, kind, schema)); err != nil {
			t.Fatalf("install upstream's fields of %s: %v", kind, err)
		}
	}
	for _, full := range fullStatuses() {
		kind := reflect.TypeOf(full).Elem().Name()
		t.Run(kind, func(t *testing.T) {
			for _, missing := range zeroFields(reflect.ValueOf(full).Elem().FieldByName("Status"), "status") {
				t.Errorf("%s is not set in fullStatuses", missing)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
			if err != nil {
				t.Fatal(err)
			}
			want := content["status"]
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetAPIVersion(group + "/v1alpha2")
			object.SetKind(kind)
			object.SetName(server.Name())
			client := server.Objects(t, object)
			stored, err := client.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stored.Object["status"] = want
			stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
				t.Errorf("upstream's definition does not store what we write (-written +stored):\n%s", diff)
			}

			// A control: a field of ours beside them would be gone, without an error.
			if err := unstructured.SetNestedField(stored.Object, "x", "status", "custody"); err != nil {
				t.Fatal(err)
			}
			if stored, err = client.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, there, _ := unstructured.NestedString(stored.Object, "status", "custody"); there {
				t.Error("a field that upstream does not have was stored: this test can't fail")
			}
		})
	}
}

// zeroFields gives the paths of the fields of a struct that have no value.
func zeroFields(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		return zeroFields(v.Elem(), path)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			break
		}
		var zero []string
		for i := range v.NumField() {
			zero = append(zero, zeroFields(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
		return zero
	case reflect.Slice:
		var zero []string
		for i := range v.Len() {
			zero = append(zero, zeroFields(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
		if v.Len() > 0 {
			return zero
		}
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

// upstreamStatuses reads the list of upstream's fields into one schema for each kind.
func upstreamStatuses(t *testing.T) map[string]map[string]any {
	t.Helper()
	file, err := os.Open("testdata/upstream-status.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	kinds := map[string]map[string]any{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 3 {
			t.Fatalf("want kind, path and type, have %q", lines.Text())
		}
		if kinds[words[0]] == nil {
			kinds[words[0]] = map[string]any{"type": "object"}
		}
		addField(kinds[words[0]], strings.Split(words[1], "."), words[2])
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return kinds
}

// addField puts a field into the schema of an object.
func addField(schema map[string]any, path []string, kind string) {
	name, isList := strings.CutSuffix(path[0], "[]")
	name, isMap := strings.CutSuffix(name, "{}")
	name, isRequired := strings.CutSuffix(name, "!")
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		schema["properties"] = properties
	}
	if isRequired {
		names, _ := schema["required"].([]any)
		schema["required"] = append(names, name)
	}
	member := map[string]any{"type": kind}
	if len(path) > 1 {
		member = map[string]any{"type": "object"}
	}
	field, there := properties[name].(map[string]any)
	switch {
	case there && isList:
		member = field["items"].(map[string]any)
	case there:
		member = field
	case isList:
		properties[name] = map[string]any{"type": "array", "items": member}
	case isMap:
		properties[name] = map[string]any{"type": "object", "additionalProperties": member}
	default:
		properties[name] = member
	}
	if len(path) > 1 {
		addField(member, path[1:], kind)
	}
}

// lookalike is a definition of a kind with a status of this schema.
func lookalike(t *testing.T, group, kind string, status map[string]any) []byte {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	definition, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Cluster",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": "v1alpha2", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"status": status},
				}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return definition
}
