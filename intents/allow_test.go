package intents

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/provision"
)

// world is a store with one record and a driver that does as it is told, but can't look.
type world struct {
	rec   provision.Record
	calls []provision.Op
}

func (w *world) Load(context.Context, provision.Name, bool) (provision.Record, error) {
	return w.rec, nil
}
func (w *world) Save(_ context.Context, r provision.Record) (string, error) {
	r.Goal, r.Bound = w.rec.Goal, w.rec.Bound
	r.Rev += "i"
	w.rec = r
	return r.Rev, nil
}
func (w *world) Owner(context.Context, provision.Record) (provision.Goal, error) {
	return w.rec.Goal, nil
}
func (w *world) Serve(context.Context, provision.Record) error { return nil }
func (w *world) Free(context.Context, provision.Record) error {
	w.rec.Bound, w.rec.Goal = false, provision.GoalGone
	return nil
}
func (w *world) Drop(context.Context, provision.Record) error {
	w.rec = provision.Record{Name: w.rec.Name, Goal: w.rec.Goal, Bound: w.rec.Bound}
	return nil
}
func (w *world) Ways() provision.Ways { return provision.Ways{} }
func (w *world) Do(_ context.Context, c provision.Call) provision.Answer {
	w.calls = append(w.calls, c.Op)
	return provision.Answer{Code: provision.OK, ID: map[provision.Op]string{provision.Create: "made"}[c.Op]}
}

// play runs a record to where it stops.
func play(t *testing.T, r provision.Record) (*world, provision.Next) {
	t.Helper()
	r.Name, r.Rev = "bc-1", "i"
	w := &world{rec: r}
	now, minted := time.Hour, 0
	e := &provision.Engine{Store: w, Backend: w, Now: func() time.Duration { return now }, Settle: time.Minute,
		Mint: func() provision.Nonce { minted++; return provision.Nonce(strconv.Itoa(minted)) },
		Pace: provision.Pace{First: time.Second, Max: time.Minute, Sweep: time.Minute}}
	m := provision.Begin(r.Name, 0)
	for range 20 {
		var n provision.Next
		if m, n = e.Run(t.Context(), m); n.Kind == provision.Done || n.Kind == provision.Stuck {
			return w, n
		}
		now += n.After
		m = m.Wake()
	}
	t.Fatalf("the record does not come to a stop: %+v", w.rec)
	return nil, provision.Next{}
}

// TestWordsHelp holds what is offered here to what package provision does: each word that
// is offered gets a record that has stopped to where it was said to go, and without the
// word it stays where it is.
func TestWordsHelp(t *testing.T) {
	const gone, del, create = "the record is gone, nothing was called", "the driver was asked to delete", "the driver was asked to create"
	for _, tc := range []struct {
		name  string
		rec   provision.Record
		phase v1alpha1.Phase
		owner OwnerState
		word  v1alpha1.Word
		want  string
	}{
		{"owner gone, delete", provision.Record{Phase: provision.PhaseLive, ID: "a", Proven: true}, v1alpha1.PhaseLive, OwnerGone, v1alpha1.WordDelete, del},
		{"owner gone, release", provision.Record{Phase: provision.PhaseLive, ID: "a", Proven: true}, v1alpha1.PhaseLive, OwnerGone, v1alpha1.WordRelease, gone},
		{"retained, delete", provision.Record{Phase: provision.PhaseRetained, ID: "a", Proven: true}, v1alpha1.PhaseRetained, OwnerGone, v1alpha1.WordDelete, del},
		{"retained, release", provision.Record{Phase: provision.PhaseRetained, ID: "a", Proven: true}, v1alpha1.PhaseRetained, OwnerGone, v1alpha1.WordRelease, gone},
		{"no way to look, release", provision.Record{Phase: provision.PhaseDeleting, Doubt: true, Goal: provision.GoalDelete, Bound: true}, v1alpha1.PhaseDeleting, OwnerDeleting, v1alpha1.WordRelease, gone},
		{"not proved, delete", provision.Record{Phase: provision.PhaseDeleting, Origin: provision.OriginAdopted, ID: "a", Goal: provision.GoalDelete, Bound: true}, v1alpha1.PhaseDeleting, OwnerDeleting, v1alpha1.WordDelete, del},
		{"no way to look, retry", provision.Record{Phase: provision.PhaseMaking, Attempt: "other", Goal: provision.GoalWant, Bound: true}, v1alpha1.PhaseMaking, OwnerWants, v1alpha1.WordRetry, create},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := v1alpha1.IntentSpec{Phase: tc.phase, Kind: v1alpha1.KindBucket, ID: tc.rec.ID, Doubt: tc.rec.Doubt, Proven: tc.rec.Proven,
				Attempt: string(tc.rec.Attempt), Origin: v1alpha1.OriginCreated}
			if tc.rec.Origin == provision.OriginAdopted {
				spec.Origin = v1alpha1.OriginAdopted
			}
			if _, err := consequence(&v1alpha1.Intent{Spec: spec}, Owner{State: tc.owner, Text: "Bucket b"}, tc.word); err != nil {
				t.Errorf("the word is refused: %v", err)
			}
			if w, n := play(t, tc.rec); len(w.calls) > 0 || w.rec.Phase != tc.rec.Phase {
				t.Errorf("without the word it goes on: %v, calls %v, %+v", n, w.calls, w.rec)
			}
			tc.rec.Word = map[v1alpha1.Word]provision.Word{v1alpha1.WordDelete: provision.WordDelete,
				v1alpha1.WordRelease: provision.WordRelease, v1alpha1.WordRetry: provision.WordRetry}[tc.word]
			w, n := play(t, tc.rec)
			ok := false
			switch tc.want {
			case gone:
				ok = len(w.calls) == 0 && w.rec.Phase == provision.PhaseNone
			case del:
				ok = slices.Contains(w.calls, provision.Delete)
			case create:
				ok = slices.Contains(w.calls, provision.Create) && w.rec.Phase == provision.PhaseLive
			}
			if !ok {
				t.Errorf("with the word: %v, calls %v, %+v; want: %s", n, w.calls, w.rec, tc.want)
			}
		})
	}
}

func TestWordsRefused(t *testing.T) {
	live := v1alpha1.IntentSpec{Phase: v1alpha1.PhaseLive, Origin: v1alpha1.OriginCreated, Kind: v1alpha1.KindBucket, ID: "a"}
	with := func(change func(*v1alpha1.IntentSpec)) v1alpha1.IntentSpec {
		s := live
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name  string
		spec  v1alpha1.IntentSpec
		owner OwnerState
		word  v1alpha1.Word
		says  string
	}{
		{"delete what is in use", live, OwnerWants, v1alpha1.WordDelete, "delete its claim"},
		{"release what is in use", live, OwnerWants, v1alpha1.WordRelease, "Delete its claim"},
		{"delete what goes already", live, OwnerDeleting, v1alpha1.WordDelete, "by itself"},
		{"release what goes already", live, OwnerDeleting, v1alpha1.WordRelease, "by itself"},
		{"delete what was not made here", with(func(s *v1alpha1.IntentSpec) { s.Origin = v1alpha1.OriginStatic }), OwnerGone, v1alpha1.WordDelete, "not made here"},
		{"delete what is being deleted", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseDeleting }), OwnerDeleting, v1alpha1.WordDelete, "--release"},
		{"delete what is being made", with(func(s *v1alpha1.IntentSpec) { s.Phase, s.ID = v1alpha1.PhaseMaking, "" }), OwnerGone, v1alpha1.WordDelete, "by itself"},
		{"retained and wanted again", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseRetained }), OwnerWants, v1alpha1.WordDelete, "is in use"},
		{"retry what serves", live, OwnerWants, v1alpha1.WordRetry, "Live"},
		{"retry what nobody wants", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseMaking }), OwnerGone, v1alpha1.WordRetry, "nobody wants"},
		{"retry what has an id", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseMaking }), OwnerWants, v1alpha1.WordRetry, "id a"},
		{"retry what has nothing open", with(func(s *v1alpha1.IntentSpec) { s.Phase, s.ID = v1alpha1.PhaseMaking, "" }), OwnerWants, v1alpha1.WordRetry, "by itself"},
		{"delete what an earlier object had", live, OwnerReplaced, v1alpha1.WordDelete, "--release"},
		{"release what an earlier object was making", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseMaking }), OwnerReplaced, v1alpha1.WordRelease, "delete that first"},
		{"a tombstone", with(func(s *v1alpha1.IntentSpec) { s.Phase = v1alpha1.PhaseReleased }), OwnerGone, v1alpha1.WordRelease, "tombstone"},
		{"an owner that can't be read", live, OwnerUnknown, v1alpha1.WordDelete, "could not be found out"},
		{"no word at all", live, OwnerGone, "Forget", "no decision"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			does, err := consequence(&v1alpha1.Intent{Spec: tc.spec}, Owner{State: tc.owner, Text: "Bucket b"}, tc.word)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q, %v; want an error with %q", does, err, tc.says)
			}
		})
	}
}

// TestAdviceIsComplete reads the reasons out of the source, so that a new one can't be
// left without a word on what to do.
func TestAdviceIsComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	wellOff := []string{v1alpha1.ReasonAnswered, v1alpha1.ReasonUnhindered, v1alpha1.ReasonCallUnanswered}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if len(advice[reason]) == 0 && !slices.Contains(wellOff, reason) {
			t.Errorf("what to do about %s?", reason)
		}
		return true
	})
	if found < 20 {
		t.Errorf("only %d reasons were found in the source", found)
	}
}
