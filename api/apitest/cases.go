package apitest

import (
	"context"
	"encoding/json"
	"errors"
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

// Check runs each case as a test of its own. Then it fails for each limit of the
// definition that no case was refused by at the very field, except those at the
// paths named last or below: a rule without a case that it refuses may as well be
// missing.
func (s *Server) Check(t *testing.T, definition []byte, cases []Case, except ...string) {
	var causes []metav1.StatusCause
	for _, c := range cases {
		verdict := "accepted"
		if c.Refused != "" {
			verdict = "refused"
		}
		t.Run(string(c.On)+"/"+verdict+"/"+c.Name, func(t *testing.T) { causes = append(causes, s.check(t, c)...) })
	}
	t.Run("coverage", func(t *testing.T) { checkCoverage(t, definition, cases, causes, except) })
}

// check runs one case and gives the causes of its refusal.
func (s *Server) check(t *testing.T, c Case) []metav1.StatusCause {
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
			t.Fatalf("was accepted, but what is stored lacks a part of the patch\npatch:  %s\nstored: %s", brief(c.Patch), stored(got))
		}
		return nil
	}
	if err == nil {
		t.Fatalf("must be refused with %q, but was accepted: %s", c.Refused, stored(got))
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.Refused) {
		t.Fatalf("must be refused as invalid with %q, but the answer is: %s", c.Refused, brief(err.Error()))
	}
	t.Logf("refused: %s", brief(err.Error()))
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		t.Fatalf("the refusal names no causes: %s", brief(err.Error()))
	}
	return refusal.Status().Details.Causes
}

// stored is what a person wants to see of an object: not its metadata.
func stored(object *unstructured.Unstructured) string {
	text, err := json.Marshal(map[string]any{"spec": object.Object["spec"], "status": object.Object["status"]})
	if err != nil {
		return err.Error()
	}
	return brief(string(text))
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
