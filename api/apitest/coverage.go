package apitest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// limit is one thing that a definition refuses at one field.
type limit struct {
	path string // members of lists are [], values of maps are {}
	what string // keyword of the schema, or the message of a CEL rule
}

// keywords are the limits a schema can set, and what the API server says when one
// is overstepped: the type of the cause, or a part of its message.
func keywords() map[string]string {
	return map[string]string{
		"maxLength":     "may not be more than",
		"minLength":     "should be at least",
		"pattern":       "should match",
		"enum":          string(metav1.CauseTypeFieldValueNotSupported),
		"maxItems":      "Too many",
		"minItems":      "should have at least",
		"maxProperties": "Too many",
		"minProperties": "should have at least",
		"minimum":       "should be greater than or equal to",
		"required":      string(metav1.CauseTypeFieldValueRequired),
		"unique":        string(metav1.CauseTypeFieldValueDuplicate),
		"date-time":     "must be of type date-time",
	}
}

// limits reads the limits of the first version of a definition.
func limits(definition []byte) ([]limit, error) {
	crd, err := Parse(string(definition))
	if err != nil {
		return nil, err
	}
	spec := crd.Object["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)
	var found []limit
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		for _, word := range []string{"maxLength", "minLength", "pattern", "enum", "maxItems", "minItems", "maxProperties", "minProperties", "minimum"} {
			value, there := schema[word]
			// At least none, at most none fewer than there can be: no limit.
			if there && value != int64(0) && value != float64(0) {
				found = append(found, limit{path, word})
			}
		}
		if kind := schema["x-kubernetes-list-type"]; kind == "set" || kind == "map" {
			found = append(found, limit{path + "[]", "unique"})
		}
		if schema["format"] == "date-time" {
			found = append(found, limit{path, "date-time"})
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			found = append(found, limit{join(path, name.(string)), "required"})
		}
		rules, _ := schema["x-kubernetes-validations"].([]any)
		for _, rule := range rules {
			found = append(found, limit{path, rule.(map[string]any)["message"].(string)})
		}
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			walk(join(path, name), properties[name].(map[string]any))
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok {
			walk(path+"{}", values)
		}
	}
	walk("", version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any))
	return found, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// refusedBy tells whether a cause is a refusal by the limit.
func (l limit) refusedBy(cause metav1.StatusCause) bool {
	if regexp.MustCompile(`\[\d+\]`).ReplaceAllString(cause.Field, "[]") != l.path {
		return false
	}
	says, ok := keywords()[l.what]
	if !ok {
		says = l.what
	}
	return string(cause.Type) == says || strings.Contains(cause.Message, says)
}

func checkCoverage(t *testing.T, definition []byte, cases []Case, causes []metav1.StatusCause, except []string) {
	all, err := limits(definition)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, l := range all {
		if slices.ContainsFunc(except, func(p string) bool { return l.path == p || strings.HasPrefix(l.path, p) }) {
			continue
		}
		tried++
		if !slices.ContainsFunc(causes, l.refusedBy) {
			t.Errorf("%s: no case is refused by %q", l.path, l.what)
		}
	}
	accepted := map[Step]bool{}
	for _, c := range cases {
		accepted[c.On] = accepted[c.On] || c.Refused == ""
	}
	for step, any := range accepted {
		if !any {
			t.Errorf("no case is accepted on %q, so its refusals prove nothing", step)
		}
	}
	t.Logf("%d limits of the definition, each with a case that it refuses; %d cases", tried, len(cases))
}
