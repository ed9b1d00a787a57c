package intents

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// WriteTable writes rows as a table for a person. With wide, it has what is long too.
func WriteTable(out io.Writer, rows []Row, now time.Time, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heading := []string{"NAME", "DRIVER", "KIND", "PHASE", "STATE", "DOUBT", "FOR", "AGE"}
	if wide {
		heading = append(heading, "ORIGIN", "ID", "STRAYS", "OWNER")
	}
	line := func(cells []string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	line(heading)
	for _, r := range rows {
		doubt := ""
		if r.Doubt {
			doubt = "yes"
		}
		state := r.State
		if r.Overdue && r.Stuck == "" {
			state += " (overdue)"
		}
		cells := []string{r.Name, r.Driver, r.Kind, r.Phase, state, doubt, r.For, duration.HumanDuration(now.Sub(r.Created))}
		if wide {
			cells = append(cells, r.Origin, Printable(r.ID), Printable(strings.Join(r.Strays, ",")), r.Owner)
		}
		for i := range cells {
			if cells[i] == "" {
				cells[i] = "-"
			}
		}
		line(cells)
	}
	return w.Flush()
}

// WriteText writes an explanation for a person.
func (e Explanation) WriteText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s.\n\nWhat happened\n", e.Name, Printable(e.What))
	for _, line := range e.Happened {
		fmt.Fprintf(&b, "  - %s\n", Printable(line))
	}
	fmt.Fprintf(&b, "\nWhat is waited for\n  ")
	if e.Reason != "" {
		fmt.Fprintf(&b, "%s: ", e.Reason)
	}
	fmt.Fprintf(&b, "%s\n", Printable(e.Waits))
	if e.Owner.Error != "" {
		fmt.Fprintf(&b, "  %s says: %s\n", e.Owner.Text, Printable(e.Owner.Error))
	}
	fmt.Fprintf(&b, "\nWhat to do\n")
	for _, line := range e.Next {
		fmt.Fprintf(&b, "  - %s\n", Printable(line))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// WriteJSON writes anything of this package as JSON; a list that is empty is [].
func WriteJSON(out io.Writer, v any) error {
	if rows, ok := v.([]Row); ok && rows == nil {
		v = []Row{}
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Printable keeps control characters, which an id from a driver or a tenant's text may
// hold, away from terminals.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
