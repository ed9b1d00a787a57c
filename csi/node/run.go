package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/exclusive"
)

// Runner runs requests of package exclusive for this machine.
type Runner struct {
	Me     exclusive.Who
	Policy exclusive.Policy
	// Patience is how long a request waits in place for a door that does not answer, before it is ABORTED and the CO calls
	// again. 0 is 10 s.
	Patience time.Duration
	// Within bounds a whole request, doors included. 0 is 2 minutes.
	Within time.Duration
	Around Around
}

const (
	defaultPatience = 10 * time.Second
	defaultWithin   = 2 * time.Minute
	firstWait       = 100 * time.Millisecond
	maxWait         = 5 * time.Second
)

// Work is one request.
type Work struct {
	Verb   exclusive.Verb
	Volume string
	Doors  Doors
	Format bool // Stage: a file system is made if the hold is blank
}

// Error is a request that did not end well. It has a gRPC code.
type Error struct {
	Code codes.Code
	Why  exclusive.Why
	Kind exclusive.Kind
	text string
	err  error
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.err }

// GRPCStatus is what gRPC answers.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.text) }

// Lost tells whether an error says that a volume is not this node's any more.
func Lost(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == exclusive.Gone
}

// Refused tells why a request can't be fulfilled as things are, [exclusive.WhyNone] if that is not what the error says.
func Refused(err error) exclusive.Why {
	var e *Error
	if errors.As(err, &e) && e.Kind == exclusive.Refused {
		return e.Why
	}
	return exclusive.WhyNone
}

// Run runs a request to its end. The error is an [Error], nil if the request is done.
func (r Runner) Run(ctx context.Context, w Work) (*Trace, error) {
	ctx, cancel := context.WithTimeout(ctx, or(r.Within, defaultWithin))
	defer cancel()
	trace := &Trace{}
	doors := &watched{w.Doors, r.Around, trace}
	begin := time.Now()
	manager := &exclusive.Manager{
		Registry: doors, Device: doors, Fencer: doors, Evidence: doors,
		Now:   func() time.Duration { return time.Since(begin) },
		First: firstWait, Max: maxWait,
	}
	request := exclusive.Request{Verb: w.Verb, Volume: w.Volume, Me: r.Me, Format: w.Format, Policy: r.Policy}
	var memo exclusive.Memo
	for {
		was := memo.Hold
		var next exclusive.Next
		memo, next = manager.Step(ctx, request, memo)
		r.noteTake(trace, was, memo)
		trace.Memo = memo
		switch {
		case next.Kind == exclusive.Again && ctx.Err() == nil:
		case next.Kind == exclusive.Wait && time.Since(begin)+next.After < or(r.Patience, defaultPatience) && sleep(ctx, next.After):
		default:
			return trace, r.answer(w, trace, next)
		}
	}
}

func or(d, instead time.Duration) time.Duration {
	if d == 0 {
		return instead
	}
	return d
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// noteTake keeps from whom the volume was taken, once that is settled: our claim stands in the place of another's hold.
func (r Runner) noteTake(t *Trace, was exclusive.Hold, m exclusive.Memo) {
	held := was.State != exclusive.None && was.State != exclusive.Free
	if held && was.Who.Machine != r.Me.Machine && m.Hold.State == exclusive.Claimed && m.Hold.Rev == m.Claim && was.Rev != m.Hold.Rev && m.Claim != "" {
		t.Took, t.Fenced = was, was.Instance != ""
	}
}

// answer is what CSI is told.
func (r Runner) answer(w Work, t *Trace, n exclusive.Next) error {
	h := t.Memo.Hold
	e := &Error{Code: codes.FailedPrecondition, Why: n.Why, Kind: n.Kind, err: t.Err}
	switch {
	case n.Kind == exclusive.Done:
		return nil
	case n.Kind == exclusive.Gone:
		e.text = fmt.Sprintf("volume %s is not this node's any more: %s", w.Volume, holder(h))
	case n.Kind == exclusive.Refused:
		e.text = r.refusal(w.Volume, n.Why, t)
	case n.Why == exclusive.WhyUnfenced:
		e.Code = codes.Aborted
		e.text = fmt.Sprintf("volume %s: the fence of %s could not be read back; an entry of Ceph's own may stand before it for up to an hour; "+
			"it is tried again", w.Volume, holder(h))
	case t.Err != nil && t.Door == "lift":
		e.Code = codes.Aborted
		e.text = fmt.Sprintf("volume %s is unmapped and given back, but this node's own old fence could not be lifted, and until it is this call "+
			"does not end: give the node's identity that right, or lift it as an admin: %v", w.Volume, t.Err)
	case t.Err != nil:
		e.Code = codes.Aborted
		e.text = fmt.Sprintf("volume %s: step %q: %v; it is tried again", w.Volume, t.Door, t.Err)
	default:
		e.Code = codes.Aborted
		e.text = fmt.Sprintf("volume %s: not at its end within the time that the call had; it is tried again", w.Volume)
	}
	return e
}

func (r Runner) refusal(volume string, why exclusive.Why, t *Trace) string {
	h := t.Memo.Hold
	switch why {
	case exclusive.WhyNoHold:
		return fmt.Sprintf("volume %s has no hold in the storage: what is on it is not known, so that nobody may be let at it", volume)
	case exclusive.WhyForeign:
		return fmt.Sprintf("volume %s: its hold can't be read, so that nobody touches it: %v", volume, t.Err)
	case exclusive.WhyOpaque:
		return fmt.Sprintf("volume %s is published on node %s through a driver that tells nothing of its client (%s): wait until that node gives it back, "+
			"or has rebooted", volume, h.Who.Node, holder(h))
	}
	verdict := "it is taken over once that node is known to be lost"
	if r.Policy == exclusive.Refuse {
		verdict = "the policy is to take over from nobody"
	}
	return fmt.Sprintf("volume %s is published on node %s (%s); %s", volume, h.Who.Node, holder(h), verdict)
}

// holder says who has a volume.
func holder(h exclusive.Hold) string {
	if h.State == exclusive.None {
		return "it has no hold"
	}
	if h.State == exclusive.Free {
		return fmt.Sprintf("nobody holds it, epoch %d", h.Epoch)
	}
	return fmt.Sprintf("hold %s by node %s, machine %s, boot %s, client %q, epoch %d", h.State, h.Who.Node, h.Who.Machine, h.Who.Boot, h.Instance, h.Epoch)
}
