package campaign

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/test/proxy"
)

// role is what a process is.
type role string

const (
	controller role = "controller"
	sidecar    role = "sidecar"
	driverRole role = "driver"
)

// slot is a place for one process at a time: when it dies it is started again.
type slot struct {
	name  string
	role  role
	door  *proxy.Door // nil for a driver
	log   string
	make  func(run int) embedded.Command
	pause time.Duration // before a start after a death

	mu    sync.Mutex
	proc  *embedded.Process
	since time.Time // proc was started
	ended []string  // how each run ended
}

// fleet is all processes of a world.
type fleet struct {
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	slots []*slot
	tally map[string]int
}

func newFleet() *fleet {
	f := &fleet{tally: map[string]int{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// count takes note of something that was done to somebody.
func (f *fleet) count(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally[what] += n
}

func (f *fleet) counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.tally)
}

// add starts a slot.
func (f *fleet) add(s *slot) {
	f.mu.Lock()
	f.slots = append(f.slots, s)
	f.mu.Unlock()
	f.done.Add(1)
	go func() {
		defer f.done.Done()
		s.keepUp(f.ctx)
	}()
}

func (f *fleet) of(roles ...role) []*slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.slots), func(s *slot) bool { return !slices.Contains(roles, s.role) })
}

// close ends all processes, at once.
func (f *fleet) close() {
	f.stop()
	for _, s := range f.of(controller, sidecar, driverRole) {
		s.kill()
	}
	f.done.Wait()
}

func (s *slot) keepUp(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := embedded.StartProcess(ctx, s.make(s.deaths()+1))
		if err != nil {
			s.end("start: " + err.Error())
		} else {
			s.mu.Lock()
			s.proc, s.since = p, time.Now()
			s.mu.Unlock()
			if ctx.Err() != nil { // close may have looked before it was there
				_ = p.Kill()
			}
			<-p.Done()
			s.end(fmt.Sprint(p.Err()))
		}
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
		}
	}
}

func (s *slot) end(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = nil
	s.ended = append(s.ended, how)
}

func (s *slot) running() *embedded.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// age is how long its process has run.
func (s *slot) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return time.Since(s.since)
}

// deaths is how often its process has ended.
func (s *slot) deaths() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ended)
}

// kill sends kill -9, and tells whether there was somebody.
func (s *slot) kill() bool {
	p := s.running()
	if p == nil {
		return false
	}
	return p.Kill() == nil
}

// freeze stops the process for a time.
func (s *slot) freeze(ctx context.Context, d time.Duration) bool {
	p := s.running()
	if p == nil || p.Pause() != nil {
		return false
	}
	go func() {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		_ = p.Resume()
	}()
	return true
}

// panics fails the test for each process that has panicked or raced.
func (f *fleet) panics(t *testing.T) {
	t.Helper()
	for _, s := range f.of(controller, sidecar, driverRole) {
		text, err := os.ReadFile(s.log)
		if err != nil {
			continue // it never ran
		}
		for _, word := range []string{"panic:", "fatal error:", "DATA RACE", "panicked", "observed a panic"} {
			if at := strings.Index(strings.ToLower(string(text)), strings.ToLower(word)); at >= 0 {
				t.Errorf("%s: %q in its log %s:\n%s", s.name, word, s.log, text[at:min(len(text), at+2000)])
				break
			}
		}
	}
}
