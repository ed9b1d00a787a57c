package sidecar

import (
	"strings"
	"testing"
)

func TestIDTemplate(t *testing.T) {
	from := named{Name: "bc-1", Parameters: map[string]string{"region": "eu", "with-dash": "x"}}
	for text, want := range map[string]string{
		"{{.Name}}":                             "bc-1",
		"{{ .Name }}":                           "bc-1",
		"{{.Parameters.region}}/{{.Name}}":      "eu/bc-1",
		"a{{.Name}}b{{.Parameters.with-dash}}c": "abc-1bxc",
		"}}{{.Name}}{":                          "}}bc-1{",
	} {
		tmpl, err := parseTemplate("t", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := tmpl.render(from); got != want || err != nil {
			t.Errorf("%s gives %q, %v, want %q", text, got, err, want)
		}
	}
	for text, word := range map[string]string{
		"{{.Name":                   "}}",
		"{{.Nam}}":                  "{{.Nam}}",
		"{{.Name | printf}}":        "there are",
		"{{.Parameters.}}{{.Name}}": "there are",
		"fixed":                     "does not hold the name",
		"{{.Parameters.region}}":    "{{.Name}}",
	} {
		if _, err := parseTemplate("bucket-id-template", text); err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "--bucket-id-template") {
			t.Errorf("%s: want an error with %q and the flag, have: %v", text, word, err)
		}
	}
	tmpl, err := parseTemplate("t", "{{.Parameters.zone}}-{{.Name}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.render(from); err == nil || !strings.Contains(err.Error(), "zone") {
		t.Errorf("a missing parameter gives %q, %v", got, err)
	}
	if none, err := parseTemplate("t", ""); none != nil || err != nil {
		t.Errorf("no template gives %v, %v", none, err)
	}
}
