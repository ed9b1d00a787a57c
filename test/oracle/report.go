package oracle

import (
	"fmt"
	"strings"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
)

// Sort is what is wrong.
type Sort string

const (
	Orphan Sort = "orphan"
	Double Sort = "double"
	Stuck  Sort = "stuck"
	Lost   Sort = "lost"
)

// Finding is one thing that is wrong.
type Finding struct {
	Sort   Sort
	Driver string
	Kind   string // of a thing in a backend, "Bucket" or "Access"; or of an object
	Name   string
	ID     string
	Why    string
}

func (f Finding) String() string {
	text := fmt.Sprintf("%s: %s %s", f.Sort, f.Kind, f.Name)
	if f.ID != "" && f.ID != f.Name {
		text += fmt.Sprintf(" (id %s)", f.ID)
	}
	if f.Driver != "" {
		text += " of driver " + f.Driver
	}
	return text + ": " + f.Why
}

// Report is the outcome of one comparison.
type Report struct {
	Orphans, Doubles, Stuck, Lost int
	Findings                      []Finding

	Items      int                     // in the backends
	Intents    map[custodyv1.Phase]int // by phase
	InDoubt    int                     // Intents
	KeptChecks int
}

// Clean tells whether nothing is wrong.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// String is the line that scripts look for, with losses where there are any.
func (r Report) String() string {
	line := fmt.Sprintf("orphans=%d doubles=%d stuck=%d", r.Orphans, r.Doubles, r.Stuck)
	if r.Lost > 0 {
		line += fmt.Sprintf(" lost=%d", r.Lost)
	}
	return line
}

// Details lists what is wrong, one finding a line.
func (r Report) Details() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func (r *Report) add(f Finding) {
	r.Findings = append(r.Findings, f)
	switch f.Sort {
	case Orphan:
		r.Orphans++
	case Double:
		r.Doubles++
	case Stuck:
		r.Stuck++
	case Lost:
		r.Lost++
	}
}
