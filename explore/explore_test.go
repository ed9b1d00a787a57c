package explore

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

// stops are the visible stops that a setting may end in for good. Any other is a way out that the protocol has missed.
func stops(c *class) (set uint32) {
	may := []provision.Why{provision.WhyNone, provision.WhyTombstone, provision.WhyRetained}
	if c.left[bForce] > 0 || c.left[bFlip] > 0 || c.left[bAgain] > 0 {
		may = append(may, provision.WhyOwnerGone, provision.WhySpent)
	}
	switch {
	case strings.Contains(c.name, "/none/"):
		may = append(may, provision.WhyNoWay, provision.WhyNoWayAgain, provision.WhyTaken)
	case c.name == "bucket/delete-by-name/"+c.name[strings.LastIndex(c.name, "/")+1:]:
		may = append(may, provision.WhyNoWayAgain, provision.WhyTaken) // a bucket is not deleted to be made anew
	}
	if c.foreign {
		may = append(may, provision.WhyTaken, provision.WhyUnproven, provision.WhyNoWay, provision.WhyNoWayAgain)
	}
	if c.lax {
		may = append(may, provision.WhyRefused) // the other one has shown another id
	}
	if c.access {
		may = append(may, provision.WhyLost)
	}
	if c.driver.again == exists {
		may = append(may, provision.WhyTaken)
	}
	for _, w := range may {
		set |= 1 << w
	}
	return set
}

func TestShipped(t *testing.T) {
	heavy := map[string]bool{"bucket/template/overlap": true, "access/delete-by-name/overlap": true, "bucket/template/crashes": true, "access/find/crashes": true}
	for _, c := range shipped() {
		bound := c.name[strings.LastIndex(c.name, "/")+1:]
		if (bound == "overlap" || bound == "crashes") && !heavy[c.name] {
			continue // custody explore
		}
		if bound == "people" && c.name != "bucket/template/people" && c.name != "access/template/people" && c.name != "bucket/generate/people" && c.name != "access/find/people" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res := search.Run(context.Background(), newModel(&c), search.Limits{})
			t.Logf("%d states, %d transitions in %v", res.States, res.Transitions, res.Took.Round(time.Millisecond))
			if !res.Complete || res.States < 1000 {
				t.Errorf("not every state was visited: %+v", res)
			}
			if odd := res.Notes &^ stops(&c); odd != 0 {
				for w := provision.Why(0); w < 32; w++ {
					if odd>>w&1 == 1 {
						t.Errorf("stops for good with %s:\n%s", w, strings.Join(newModel(&c).Story(res.NoteTraces[int(w)]), "\n"))
					}
				}
			}
			for f, trace := range res.Traces {
				t.Errorf("%v, %d times:\n%s", f, res.Counts[f], strings.Join(newModel(&c).Story(trace), "\n"))
			}
		})
	}
}

// TestBaselines: each breaks, in the way that is written here.
func TestBaselines(t *testing.T) {
	type broken struct {
		fault search.Fault
		steps int
		last  string // what the trace ends in
	}
	want := map[string]broken{
		"cosi-today/id-from-name":                      {search.Orphan, 5, "takes the finalizer off"},
		"cosi-today/server-assigned-id":                {search.Orphan, 5, "takes the finalizer off"},
		"create-then-delete/id-from-name":              {search.Orphan, 8, "lands"},
		"create-then-delete/id-from-name-no-repeat":    {search.Stuck, 2, "reply is lost"},
		"create-then-delete/server-assigned-id":        {search.Orphan, 8, "lands"},
		"create-then-delete/server-assigned-no-repeat": {search.Double, 5, "may use it"},
		"get-by-name/id-from-name":                     {search.Orphan, 7, "lands"},
		"get-by-name/server-assigned-id":               {search.Orphan, 7, "lands"},
		"generate-id/id-known-before":                  {search.Orphan, 9, "lands"},
		"generate-id/id-known-before-state":            {search.Orphan, 5, "takes the finalizer off"},
		"no-ids/id-from-name":                          {search.Orphan, 7, "lands"},
		"delete-by-name/id-from-name":                  {search.Orphan, 7, "lands"},
		"delete-by-name/server-assigned-id":            {search.Orphan, 7, "lands"},
		"create-or-fail/id-from-name":                  {search.Orphan, 8, "lands"},
		"create-or-fail/server-assigned-id":            {search.Orphan, 8, "lands"},
		"hybrid/id-from-name-no-repeat":                {search.Stuck, 2, "reply is lost"},
		"hybrid/server-assigned-id":                    {search.Orphan, 6, "lands"},
		"memory-queue/id-from-name":                    {search.Orphan, 5, "takes the finalizer off"},
		"memory-queue/server-assigned-id":              {search.Orphan, 5, "takes the finalizer off"},
		"driver-database/driver-own-database":          {search.Double, 5, "may use it"},
		"csi-final/id-from-name":                       {search.Orphan, 5, "takes the finalizer off"},
		"csi-final/server-assigned-id":                 {search.Orphan, 5, "takes the finalizer off"},
		"no-ids/id-from-name/foreign":                  {search.Loss, 3, "somebody else's"},
		"delete-by-name/id-from-name/foreign":          {search.Loss, 3, "somebody else's"},
	}
	for _, c := range baselines() {
		w, ok := want[c.name]
		if !ok {
			t.Errorf("%s: nothing is written of how it breaks", c.name)
			continue
		}
		delete(want, c.name)
		res := search.Run(context.Background(), newModel(&c), search.Limits{})
		story := newModel(&c).Story(res.Traces[w.fault])
		if len(story) != w.steps || !res.Complete || !strings.Contains(story[len(story)-1], w.last) {
			t.Errorf("%s: %v; want %v in %d steps that end in %q, have %d:\n%s", c.name, res.Counts, w.fault, w.steps, w.last, len(story), strings.Join(story, "\n"))
		}
	}
	for name := range want {
		t.Errorf("%s: no such baseline", name)
	}
}

// TestCodec: what is written is read back, for every state on the way, and no field is forgotten.
func TestCodec(t *testing.T) {
	// If a field is added, teach codec.go about it first.
	for _, v := range []struct {
		of   any
		want int
	}{{provision.Memo{}, 32}, {provision.Record{}, 21}, {provision.Hand{}, 6}, {world{}, 12}, {actor{}, 7}, {object{}, 8}, {thing{}, 5}, {call{}, 2}, {memory{}, 7}} {
		if n := reflect.TypeOf(v.of).NumField(); n != v.want {
			t.Errorf("%T has %d fields, codec.go knows %d", v.of, n, v.want)
		}
	}
	for _, c := range []class{shipped()[0], baselines()[0]} {
		c.left = budgetOf(map[budget]uint8{bCrash: 1, bLost: 1, bLate: 1, bWrong: 1, bDelete: 1, bStale: 1, bOver: 1})
		c.puff = 3
		m, seen := newModel(&c), map[string]bool{}
		var w world
		for todo := [][]byte{m.Start(nil)}; len(todo) > 0 && len(seen) < 20_000; todo = todo[1:] {
			if seen[string(todo[0])] {
				continue
			}
			seen[string(todo[0])] = true
			m.cd.read(todo[0], &w)
			if again := m.cd.write(nil, &w); !bytes.Equal(again, todo[0]) {
				t.Fatalf("%x is read and written as %x", todo[0], again)
			}
			m.Expand(todo[0], func(_ search.Move, next []byte) { todo = append(todo, bytes.Clone(next)) })
		}
	}
}

// TestRandom: the random search finds what is there to be found, the run can be played again, and it is short.
func TestRandom(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, made, err := Random(ctx, "cosi-today/server-assigned-id", 1)
	if err != nil || p == nil {
		t.Fatalf("nothing found in %d moves: %v", made, err)
	}
	if len(p.Choices) > 12 {
		t.Errorf("%d choices are left:\n%s", len(p.Choices), strings.Join(p.Story, "\n"))
	}
	story, fault, err := p.Play()
	if err != nil || fault != p.Fault || strings.Join(story, "\n") != strings.Join(p.Story, "\n") {
		t.Errorf("played again: %v, %v\n%s", fault, err, strings.Join(story, "\n"))
	}
	p2, _, _ := Random(ctx, "cosi-today/server-assigned-id", 1)
	if p2 == nil || !reflect.DeepEqual(p.Choices, p2.Choices) {
		t.Error("the same seed found something else")
	}
}

func TestBadInput(t *testing.T) {
	if _, err := Search(context.Background(), "no/such", search.Limits{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := ReadReplay(strings.NewReader(`{"format": 99}`)); err == nil || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("a newer replay file: %v", err)
	}
	if _, err := ReadReplay(strings.NewReader(`custody`)); err == nil {
		t.Error("a replay file that is none was read")
	}
	p := Replay{Format: replayFormat, Name: "cosi-today/id-from-name", Choices: []search.Choice{choice(mLand, 1, 0)}}
	if _, _, err := p.Play(); err == nil || !strings.Contains(err.Error(), "can't be made any more") {
		t.Errorf("a choice that is not there: %v", err)
	}
}

func BenchmarkSearch(b *testing.B) {
	for b.Loop() {
		c := shipped()[0]
		res := search.Run(context.Background(), newModel(&c), search.Limits{})
		b.ReportMetric(float64(res.Transitions)/res.Took.Seconds(), "transitions/s")
	}
}
