package failpoint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"sync"
	"syscall"
	"time"
)

// Env is the variable that arms a process: a Plan as JSON.
const Env = "CUSTODY_TEST_FAILPOINTS"

// Action is what happens at a point.
type Action string

const (
	Kill  Action = "kill"  // the process kills itself with SIGKILL
	Stop  Action = "stop"  // it stops itself with SIGSTOP, and goes on at SIGCONT
	Sleep Action = "sleep" // the call waits for Rule.For, the process goes on
)

// Rule arms the points that match.
type Rule struct {
	// Point is a name, or a pattern as of path.Match with "." for "/".
	Point  string
	Action Action
	// Chance is the probability at each pass, 0 to 1.
	Chance float64 `json:",omitempty"`
	// Pass, if not zero, hits at the n-th pass through a matching point and never
	// else; Chance is not used.
	Pass int           `json:",omitempty"`
	For  time.Duration `json:",omitempty"`
}

// Plan is what a process is armed with.
type Plan struct {
	Seed  uint64
	Rules []Rule
	// Log is a file that a line is added to before each action, "pid action point".
	Log string
	// Off disarms the process as soon as a file of this name exists, On as long as
	// none does; "" for none.
	Off, On string
}

// Points passes through the points of one process. The nil Points is not armed.
type Points struct {
	plan Plan

	mu     sync.Mutex
	dice   *rand.Rand
	passes []int // by rule
}

// FromEnv arms this process as its environment says, nil if it doesn't.
func FromEnv() (*Points, error) {
	text := os.Getenv(Env)
	if text == "" {
		return nil, nil
	}
	var p Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("%s is not a plan of failpoints: %w", Env, err)
	}
	return New(p)
}

// New arms this process.
func New(p Plan) (*Points, error) {
	for _, r := range p.Rules {
		if _, err := path.Match(pattern(r.Point), ""); err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", r.Point, err)
		}
		switch r.Action {
		case Kill, Stop, Sleep:
		default:
			return nil, fmt.Errorf("failpoint %q: no action %q", r.Point, r.Action)
		}
	}
	return &Points{plan: p, dice: rand.New(rand.NewPCG(p.Seed, 3)), passes: make([]int, len(p.Rules))}, nil
}

// Setting is the plan for a child's environment.
func (p Plan) Setting() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return Env + "=" + string(text)
}

// Pass goes through a point.
func (p *Points) Pass(point string) {
	if p == nil {
		return
	}
	r, hit := p.hit(point)
	if !hit || exists(p.plan.Off) || p.plan.On != "" && !exists(p.plan.On) {
		return
	}
	p.log(r.Action, point)
	switch r.Action {
	case Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case Stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// The signal reaches some thread soon, not this line at once: this goroutine
		// must not go on before.
		time.Sleep(50 * time.Millisecond)
	case Sleep:
		time.Sleep(r.For)
	}
}

func (p *Points) hit(point string) (Rule, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.plan.Rules {
		if ok, _ := path.Match(pattern(r.Point), pattern(point)); !ok {
			continue
		}
		p.passes[i]++
		if r.Pass != 0 {
			if p.passes[i] == r.Pass {
				return r, true
			}
			continue
		}
		if p.dice.Float64() < r.Chance {
			return r, true
		}
	}
	return Rule{}, false
}

func exists(file string) bool {
	if file == "" {
		return false
	}
	_, err := os.Stat(file)
	return err == nil
}

// log is best effort: a campaign counts by it, nothing is decided by it.
func (p *Points) log(a Action, point string) {
	if p.plan.Log == "" {
		return
	}
	f, err := os.OpenFile(p.plan.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = fmt.Fprintln(f, os.Getpid(), a, point)
}

// pattern makes "." what path.Match does not let "*" cross.
func pattern(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '.' {
			b[i] = '/'
		}
	}
	return string(b)
}
