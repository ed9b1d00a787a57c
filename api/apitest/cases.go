package apitest

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Step is the request that a case is about.
type Step string

// The steps.
const (
	Create       Step = "create"        // the object, with the patch in it
	Update       Step = "update"        // the patch, to an object that exists
	UpdateStatus Step = "update status" // the patch, to the status of an object that exists
)

// Case is one request and what the API server must answer.
type Case struct {
	Name   string
	On     Step
	Object string // YAML; accepted as it is, which each case checks anew
	Before string // JSON merge patch of the status, made before an update; "" for none
	Patch  string // JSON merge patch
	// Refused is a part of the API server's refusal; "" if the request is accepted,
	// and then the patch must be found in what was stored.
	Refused string
}

// Check runs each case as a test of its own.
func (s *Server) Check(t *testing.T, cases []Case) {
	for _, c := range cases {
		verdict := "accepted"
		if c.Refused != "" {
			verdict = "refused"
		}
		t.Run(string(c.On)+"/"+verdict+"/"+c.Name, func(t *testing.T) { s.check(t, c) })
	}
}

func (s *Server) check(t *testing.T, c Case) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	object, err := Parse(c.Object)
	if err != nil {
		t.Fatalf("the object of the case is not YAML: %v", err)
	}
	object.SetName(s.Name())
	client := s.Objects(t, object)

	// Without the patch the object is accepted, or a refusal would prove nothing.
	if _, err := client.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatalf("the object is refused without the patch: %v", err)
	}
	var got *unstructured.Unstructured
	switch c.On {
	case Create:
		patched := object.DeepCopy()
		patched.Object = merge(patched.Object, decode(t, c.Patch)).(map[string]any)
		patched.SetName(s.Name())
		got, err = client.Create(ctx, patched, metav1.CreateOptions{})
	case Update, UpdateStatus:
		if c.Before != "" {
			if _, err := client.Patch(ctx, object.GetName(), types.MergePatchType, []byte(c.Before), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatalf("the status before the patch is refused: %v", err)
			}
		}
		var subresource []string
		if c.On == UpdateStatus {
			subresource = []string{"status"}
		}
		got, err = client.Patch(ctx, object.GetName(), types.MergePatchType, []byte(c.Patch), metav1.PatchOptions{}, subresource...)
	}

	if c.Refused == "" {
		if err != nil {
			t.Fatalf("must be accepted, but was refused: %s", brief(err.Error()))
		}
		if patch := decode(t, c.Patch); !holds(got.Object, patch) {
			t.Fatalf("was accepted, but what is stored lacks a part of the patch\npatch:  %s\nstored: %v", c.Patch, got.Object)
		}
		return
	}
	if err == nil {
		t.Fatalf("must be refused with %q, but was accepted: %v", c.Refused, got.Object)
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.Refused) {
		t.Fatalf("must be refused as invalid with %q, but the answer is: %s", c.Refused, brief(err.Error()))
	}
	t.Logf("refused: %s", brief(err.Error()))
}

// brief is the first line of a text, cut to what a person reads: a refusal of a long
// list names each member.
func brief(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 300 {
		return line[:300] + "..."
	}
	return line
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("the patch of the case is not JSON: %v", err)
	}
	return m
}

// merge applies a JSON merge patch (RFC 7396).
func merge(to, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	m, ok := to.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for key, value := range p {
		if value == nil {
			delete(m, key)
			continue
		}
		m[key] = merge(m[key], value)
	}
	return m
}

// holds tells whether applying the patch would change nothing.
func holds(object, patch any) bool {
	p, ok := patch.(map[string]any)
	if !ok {
		return equal(object, patch)
	}
	m, ok := object.(map[string]any)
	if !ok {
		return len(p) == 0
	}
	for key, value := range p {
		found, there := m[key]
		if value == nil {
			if there {
				return false
			}
			continue
		}
		if !there || !holds(found, value) {
			return false
		}
	}
	return true
}

// equal compares two JSON values whatever Go types their numbers have.
func equal(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}

// Rules are the messages of all CEL rules in a definition, so that a test can tell
// whether it has a case for each.
func Rules(definition []byte) ([]string, error) {
	crd, err := Parse(string(definition))
	if err != nil {
		return nil, err
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			rules, _ := v["x-kubernetes-validations"].([]any)
			for _, r := range rules {
				if r, ok := r.(map[string]any); ok {
					if message, ok := r["message"].(string); ok {
						found = append(found, message)
					}
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(crd.Object)
	return found, nil
}

// CheckCoverage fails for each CEL rule of the definition that no case has refused,
// and for each refusal that has no accepted counterpart on the same step.
func CheckCoverage(t *testing.T, definition []byte, cases []Case) {
	t.Helper()
	rules, err := Rules(definition)
	if err != nil {
		t.Fatal(err)
	}
	refused, accepted := map[string]bool{}, map[Step]bool{}
	for _, c := range cases {
		if c.Refused == "" {
			accepted[c.On] = true
		}
		refused[c.Refused] = true
	}
	for _, rule := range rules {
		if !refused[rule] {
			t.Errorf("no case is refused by the rule %q", rule)
		}
	}
	for _, c := range cases {
		if !accepted[c.On] {
			t.Errorf("no case is accepted on %q, so its refusals prove nothing", c.On)
		}
	}
	t.Logf("%d CEL rules, %d cases", len(rules), len(cases))
}
