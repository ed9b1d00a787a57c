package failpoint_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/custody-storage/custody/provision"
	"github.com/custody-storage/custody/test/failpoint"
)

// bench is a store with one object that is wanted and later deleted.
type bench struct {
	goal  provision.Goal
	given string
	freed bool
	saved map[provision.Name]provision.Record
}

func (b *bench) Load(context.Context, provision.Name, bool) (provision.Record, error) {
	return provision.Record{Name: "bc-1", Goal: b.goal, Bound: !b.freed, Given: b.given}, nil
}
func (b *bench) Save(_ context.Context, r provision.Record) (string, error) {
	b.saved[r.Name] = r
	return "7", nil
}
func (b *bench) Owner(context.Context, provision.Record) (provision.Goal, error) { return b.goal, nil }
func (b *bench) Serve(context.Context, provision.Record) error                   { return nil }
func (b *bench) Free(context.Context, provision.Record) error                    { b.freed = true; return nil }
func (b *bench) Drop(context.Context, provision.Record) error                    { return nil }

// TestMain is also the child that passes through points until one kills it.
func TestMain(m *testing.M) {
	p, err := failpoint.FromEnv()
	if err != nil {
		panic(err)
	}
	if p != nil {
		s := p.Store(&bench{saved: map[provision.Name]provision.Record{}})
		for range 3 {
			_, _ = s.Save(context.Background(), provision.Record{Name: "bc-1", Rev: "6"})
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestPoints(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	run := func(p failpoint.Plan) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env = append(os.Environ(), p.Setting())
		return c.Run()
	}
	killed := func(err error) bool {
		var exit *exec.ExitError
		return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
	if err := run(failpoint.Plan{Log: log, Rules: []failpoint.Rule{{Point: "store.save.*", Action: failpoint.Kill, Pass: 4}}}); !killed(err) {
		t.Errorf("armed: %v", err)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.HasSuffix(string(text), "kill store.save.after\n") {
		t.Errorf("log: %q, %v", text, err)
	}
	if err := run(failpoint.Plan{Rules: []failpoint.Rule{{Point: "backend.*", Action: failpoint.Kill, Chance: 1}}}); err != nil {
		t.Errorf("armed elsewhere: %v", err)
	}
	if err := run(failpoint.Plan{Off: log, Rules: []failpoint.Rule{{Point: "store.*.*", Action: failpoint.Kill, Chance: 1}}}); err != nil {
		t.Errorf("disarmed: %v", err)
	}
	for on, dies := range map[string]bool{log: true, log + "-absent": false} {
		err := run(failpoint.Plan{On: on, Rules: []failpoint.Rule{{Point: "store.*.*", Action: failpoint.Kill, Chance: 1}}})
		if killed(err) != dies {
			t.Errorf("armed as long as %s exists: %v", on, err)
		}
	}
	if _, err := failpoint.New(failpoint.Plan{Rules: []failpoint.Rule{{Point: "x", Action: "explode"}}}); err == nil {
		t.Error("an action that there is not was taken")
	}
}

func TestWithoutIntents(t *testing.T) {
	ctx := t.Context()
	inner := &bench{goal: provision.GoalWant, saved: map[provision.Name]provision.Record{}}
	s := failpoint.WithoutIntents(inner)
	r, err := s.Load(ctx, "bc-1", true)
	if err != nil || r.Rev != "" {
		t.Fatalf("at first: %+v, %v", r, err)
	}
	r.Phase, r.Attempt = provision.PhaseMaking, "n1"
	if r.Rev, err = s.Save(ctx, r); err != nil || len(inner.saved) != 0 {
		t.Fatalf("saved: %v, %v", err, inner.saved)
	}
	if again, err := s.Load(ctx, "bc-1", true); err != nil || again.Attempt != "n1" || again.Rev != r.Rev {
		t.Errorf("it remembers: %+v, %v", again, err)
	}
	if _, err := s.Save(ctx, provision.Record{Name: "bc-1"}); !errors.Is(err, provision.ErrStale) {
		t.Errorf("created twice: %v", err)
	}
	// Restarted, it believes that nothing was asked.
	inner.goal = provision.GoalDelete
	s = failpoint.WithoutIntents(inner)
	if r, err := s.Load(ctx, "bc-1", true); err != nil || r.Phase != provision.PhaseNone || r.Bound || !inner.freed {
		t.Errorf("after a restart: %+v, %v, freed %v", r, err, inner.freed)
	}
}
