package sidecar

import (
	"fmt"
	"strings"
)

// named is what an id template sees.
type named struct {
	Name       string
	Parameters map[string]string
}

// idTemplate gives a driver's id. It is what Go's text/template would make of
// {{.Name}} and {{.Parameters.KEY}}, and knows nothing else. The library itself finds
// methods by their names, so linking it keeps every method of every Kubernetes type:
// it made the binary larger by 15 MB, and each sidecar's memory by 10.
type idTemplate struct{ pieces []piece }

// piece is a text, or what is put in its place.
type piece struct {
	text string // as it is
	name bool   // the name
	key  string // the parameter of that key
}

// parseTemplate reads an id template and tries it out; nil for none.
func parseTemplate(flag, text string) (*idTemplate, error) {
	if text == "" {
		return nil, nil
	}
	t := &idTemplate{}
	holdsName := false
	for rest := text; rest != ""; {
		plain, after, found := strings.Cut(rest, "{{")
		if plain != "" {
			t.pieces = append(t.pieces, piece{text: plain})
		}
		if !found {
			break
		}
		field, after, found := strings.Cut(after, "}}")
		if !found {
			return nil, fmt.Errorf("--%s: %q has no }} after {{%s", flag, text, field)
		}
		rest = after
		field = strings.TrimSpace(field)
		key, isParameter := strings.CutPrefix(field, ".Parameters.")
		switch {
		case field == ".Name":
			holdsName = true
			t.pieces = append(t.pieces, piece{name: true})
		case isParameter && key != "":
			t.pieces = append(t.pieces, piece{key: key})
		default:
			return nil, fmt.Errorf("--%s: %q has {{%s}}; there are {{.Name}} and {{.Parameters.KEY}}, where KEY is that of a parameter of the class", flag, text, field)
		}
	}
	if !holdsName {
		// Ids by template are deleted because their name is ours. One that does not hold the name proves nothing.
		return nil, fmt.Errorf("--%s: %q does not hold the name; write {{.Name}} where it goes", flag, text)
	}
	return t, nil
}

// render gives the id. A parameter that is not there is an error: without it the id would be another's.
func (t *idTemplate) render(from named) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		switch {
		case p.name:
			b.WriteString(from.Name)
		case p.key != "":
			value, there := from.Parameters[p.key]
			if !there {
				return "", fmt.Errorf("the id template needs the parameter %q, which is not among those of the class", p.key)
			}
			b.WriteString(value)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String(), nil
}
