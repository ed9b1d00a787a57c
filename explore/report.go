package explore

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/explore/writers"
)

// Row is what one search came to.
type Row struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"` // shipped or baseline
	Capability  string   `json:"capability"`
	Bound       string   `json:"bound"`
	Complete    bool     `json:"complete"`
	States      int      `json:"states"`
	Transitions int      `json:"transitions"`
	Depth       int      `json:"depth"`
	Orphans     int      `json:"orphans"`
	Doubles     int      `json:"doubles"`
	Losses      int      `json:"losses"`
	Stuck       int      `json:"stuck"`
	TwoWriters  int      `json:"two_writers"`
	Trace       []string `json:"shortest_trace"`
	Seconds     float64  `json:"seconds"`

	choices []search.Choice
	fault   search.Fault
}

// Bad tells whether a shipped protocol was caught.
func (r Row) Bad() bool { return r.Kind == "shipped" && r.Found() }

// Found tells whether anything was found.
func (r Row) Found() bool { return r.Orphans+r.Doubles+r.Losses+r.Stuck+r.TwoWriters > 0 }

// ErrUnknown says that no protocol has this name.
var ErrUnknown = errors.New("no such protocol; custody explore --list names them")

// all gives every setting there is, of both protocols.
func all() (ps []search.Protocol) {
	for _, c := range append(shipped(), baselines()...) {
		p := search.Protocol{Name: c.name, Kind: "shipped", Capability: c.what, What: c.what, Bound: bound(&c)}
		if c.base != nil {
			p.Kind, p.Capability = "baseline", c.on
		}
		p.New = func(more bool) search.Teller {
			c := c
			if more {
				wide(&c)
			}
			return newModel(&c)
		}
		ps = append(ps, p)
	}
	return append(ps, writers.Protocols()...)
}

// Names gives the name of every setting that matches the pattern, and a line on each.
func Names(pattern string) (names, what []string) {
	for _, c := range all() {
		if match(pattern, c.Name) {
			names, what = append(names, c.Name), append(what, c.What+" ("+c.Bound+")")
		}
	}
	return names, what
}

// match is path.Match, where a pattern also matches what lies below it. An empty one matches all.
func match(pattern, name string) bool {
	if pattern == "" || name == pattern || strings.HasPrefix(name, strings.TrimSuffix(pattern, "/")+"/") {
		return true
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func byName(name string) (search.Protocol, error) {
	for _, c := range all() {
		if c.Name == name {
			return c, nil
		}
	}
	return search.Protocol{}, fmt.Errorf("%q: %w", name, ErrUnknown)
}

// never gives a setting of "never none" by its name.
func never(name string) (*class, error) {
	for _, c := range append(shipped(), baselines()...) {
		if c.name == name {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("%q: %w", name, ErrUnknown)
}

// bound puts the budgets into words.
func bound(c *class) string {
	var s []string
	for b, n := range c.left {
		if n > 0 {
			s = append(s, fmt.Sprintf("%s=%d", budgetNames[b], n))
		}
	}
	if c.left[bOver] > 0 {
		s = append(s, fmt.Sprintf("late-requests=%d", c.puff))
	}
	return strings.Join(s, " ")
}

// Search visits every state of the named setting.
func Search(ctx context.Context, name string, lim search.Limits) (Row, error) {
	c, err := byName(name)
	if err != nil {
		return Row{}, err
	}
	res := search.Run(ctx, c.New(false), lim)
	r := Row{
		Name: c.Name, Kind: c.Kind, Capability: c.Capability, Bound: c.Bound, Complete: res.Complete,
		States: res.States, Transitions: res.Transitions, Depth: res.Depth, Seconds: res.Took.Seconds(),
		Orphans: res.Counts[search.Orphan], Doubles: res.Counts[search.Double], Losses: res.Counts[search.Loss],
		Stuck: res.Counts[search.Stuck], TwoWriters: res.Counts[search.TwoWriters], Trace: []string{},
	}
	for _, f := range search.Kinds {
		if t := res.Traces[f]; t != nil && (r.choices == nil || len(t) < len(r.choices)) {
			r.choices, r.fault = t, f
		}
	}
	if r.choices != nil {
		r.Trace = c.New(false).Story(r.choices)
	}
	return r, nil
}

// Random walks at random with every budget at its highest, until ctx ends or something is found.
func Random(ctx context.Context, name string, seed uint64) (*Replay, int, error) {
	c, err := byName(name)
	if err != nil {
		return nil, 0, err
	}
	m := c.New(true)
	choices, fault, made := search.Walk(ctx, m, seed, 120)
	if fault == 0 {
		return nil, made, nil
	}
	return &Replay{Format: replayFormat, Name: c.Name, Wide: true, Seed: seed, Fault: fault.String(), Choices: choices, Story: m.Story(choices)}, made, nil
}

// wide opens the budgets that the setting has as far as a state can hold them.
func wide(c *class) {
	for b := range c.left {
		if c.left[b] > 0 && c.left[b] < 3 && budget(b) != bOver && budget(b) != bDelete {
			c.left[b]++
		}
	}
	c.puff = max(c.puff, 12)
}

const replayFormat = 1

// Replay is a run that can be played again.
type Replay struct {
	Format  int             `json:"format"`
	Name    string          `json:"name"`
	Wide    bool            `json:"wide"`
	Seed    uint64          `json:"seed"`
	Fault   string          `json:"fault"`
	Choices []search.Choice `json:"choices"`
	Story   []string        `json:"story"`
}

// Replay makes a replay of the row's shortest trace.
func (r Row) Replay() *Replay {
	return &Replay{Format: replayFormat, Name: r.Name, Fault: r.fault.String(), Choices: r.choices, Story: r.Trace}
}

// ReadReplay reads a replay file.
func ReadReplay(from io.Reader) (*Replay, error) {
	var p Replay
	if err := json.NewDecoder(from).Decode(&p); err != nil {
		return nil, fmt.Errorf("this is no replay file: %w", err)
	}
	if p.Format != replayFormat {
		return nil, fmt.Errorf("the replay file has format %d, this program plays format %d: play it with the program that wrote it", p.Format, replayFormat)
	}
	return &p, nil
}

// Play plays the run and tells each move, and what it came to.
func (p *Replay) Play() (story []string, fault string, err error) {
	c, err := byName(p.Name)
	if err != nil {
		return nil, "", err
	}
	m := c.New(p.Wide)
	f, ok := search.Play(m, p.Choices)
	if !ok {
		return nil, "", fmt.Errorf("%s: a choice of the replay file can't be made any more: the protocol or the model has changed since", p.Name)
	}
	return m.Story(p.Choices), f.String(), nil
}

// Table writes the rows for people.
func Table(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tSTATES\tTRANSITIONS\tALL\tORPHAN\tDOUBLE\tLOSS\tSTUCK\tTWO\tTRACE\tSECONDS")
	for _, r := range rows {
		every := "yes"
		if !r.Complete {
			every = "no"
		}
		steps := "-"
		if r.Found() {
			steps = fmt.Sprintf("%d", len(r.Trace))
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%.1f\n", r.Name, r.Kind, r.States, r.Transitions, every,
			r.Orphans, r.Doubles, r.Losses, r.Stuck, r.TwoWriters, steps, r.Seconds)
	}
	return w.Flush()
}

//go:embed proof_head.md
var proofHead string

// Markdown writes docs/proof.md.
func Markdown(to io.Writer, rows []Row) {
	fmt.Fprint(to, proofHead)
	for _, part := range []struct{ kind, title string }{{"shipped", "The shipped protocol"}, {"baseline", "Other protocols"}} {
		fmt.Fprintf(to, "## %s\n\n", part.title)
		markdown(to, slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Kind != part.kind }))
		fmt.Fprintln(to)
	}
}

func markdown(to io.Writer, rows []Row) {
	fmt.Fprintln(to, "| name | capability | bound | states | transitions | every state | orphans | doubles | losses | stuck | two writers |")
	fmt.Fprintln(to, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		every := "yes"
		if !r.Complete {
			every = "no"
		}
		fmt.Fprintf(to, "| %s | %s | %s | %d | %d | %s | %d | %d | %d | %d | %d |\n", r.Name, r.Capability, r.Bound, r.States, r.Transitions, every, r.Orphans, r.Doubles, r.Losses, r.Stuck, r.TwoWriters)
	}
	for _, r := range rows {
		if !r.Found() {
			continue
		}
		fmt.Fprintf(to, "\n**%s**: %s, in %d steps.\n\n", r.Name, r.fault, len(r.Trace))
		for i, l := range r.Trace {
			fmt.Fprintf(to, "%d. %s\n", i+1, l)
		}
	}
}

// Progress is called on long searches.
type Progress func(name string, states, transitions, todo int)

// Limits makes the limits of a search with progress.
func (p Progress) Limits(name string, states int) search.Limits {
	l := search.Limits{States: states, Every: 10 * time.Second}
	if p != nil {
		l.Tick = func(s, t, d int) { p(name, s, t, d) }
	}
	return l
}

// Shipped tells whether the run is one of the shipped protocol.
func (p *Replay) Shipped() bool {
	c, err := byName(p.Name)
	return err == nil && c.Kind == "shipped"
}
