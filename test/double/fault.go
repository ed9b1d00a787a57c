package double

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

// Op is a call to the driver, as far as faults are concerned.
type Op string

const (
	Generate     Op = "generate"
	Create       Op = "create"
	Get          Op = "get"
	Delete       Op = "delete"
	DeleteByName Op = "delete-by-name"
	Find         Op = "find"
	List         Op = "list"
)

// Work says when the backend does what a call asks for.
type Work string

const (
	Now   Work = "now"
	Late  Work = "late" // after Plan.LateBy, whether or not the driver lives
	Never Work = "never"
)

// Death says where in the call the driver kills itself.
type Death string

const (
	NoDeath    Death = ""
	BeforeWork Death = "before"
	AfterWork  Death = "after"
)

// Plan is what befalls one call.
type Plan struct {
	Fault  string // the name of the fault, "" if none
	Before time.Duration
	Work   Work
	LateBy time.Duration
	After  time.Duration
	Code   codes.Code // instead of the true answer, if not OK
	Detail bool       // the error carries the id
	Die    Death
}

// wrong are the codes that a driver answers though the work was done.
var wrong = []codes.Code{codes.InvalidArgument, codes.Internal, codes.AlreadyExists, codes.ResourceExhausted, codes.Unknown}

// refusals are the codes that a driver answers where nothing was done.
var refusals = []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Internal, codes.PermissionDenied, codes.Aborted}

// plan throws the dice for one call.
func (f Faults) plan(r *rand.Rand, op Op) Plan {
	p := Plan{Work: Now, Before: f.Delay}
	changes := op == Create || op == Delete || op == DeleteByName
	upTo := func(d time.Duration) time.Duration {
		if d <= 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(d)))
	}
	x := r.Float64()
	hit := func(chance float64) bool {
		x -= chance
		return x < 0
	}
	switch {
	case hit(f.Slow):
		p.Fault, p.Before = "slow", p.Before+upTo(f.SlowBy)
	case hit(f.Lost):
		p.Fault, p.After = "lost", f.LostBy
	case hit(f.Late) && changes:
		p.Fault, p.Work, p.LateBy, p.Code = "late", Late, upTo(f.LateBy), codes.Unavailable
	case hit(f.Wrong) && op == Create:
		p.Fault, p.Code = "wrong", wrong[r.IntN(len(wrong))]
	case hit(f.Detail) && op == Create:
		p.Fault, p.Code, p.Detail = "detail", wrong[r.IntN(len(wrong))], true
	case hit(f.Refuse):
		p.Fault, p.Work, p.Code = "refuse", Never, refusals[r.IntN(len(refusals))]
	case hit(f.Die):
		p.Fault, p.Die = "die", BeforeWork
		if r.IntN(2) == 0 {
			p.Die = AfterWork
		}
	}
	return p
}
