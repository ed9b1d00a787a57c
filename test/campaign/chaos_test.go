package campaign

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/custody-storage/custody/test/failpoint"
	"github.com/custody-storage/custody/test/proxy"
)

// points are the failpoints of a campaign's sidecars.
var points = []failpoint.Rule{
	{Point: "backend.create.*", Action: failpoint.Kill, Chance: 0.03},
	{Point: "backend.*.*", Action: failpoint.Kill, Chance: 0.012},
	{Point: "store.begin.*", Action: failpoint.Kill, Chance: 0.015},
	{Point: "store.save.*", Action: failpoint.Kill, Chance: 0.015},
	{Point: "store.*.*", Action: failpoint.Kill, Chance: 0.005},
	{Point: "backend.*.before", Action: failpoint.Sleep, Chance: 0.01, For: lease + time.Second},
	{Point: "store.save.*", Action: failpoint.Sleep, Chance: 0.01, For: lease},
}

// losses are the proxy's dice.
var losses = proxy.Faults{DropRequest: 0.01, DropReply: 0.025, Delay: 0.03, DelayBy: 600 * time.Millisecond}

// grown is the age at which a process has begun to work, on a busy machine.
const grown = 3 * time.Second

// chaos kills, freezes and cuts off until ctx ends.
type chaos struct {
	w     *world
	dice  *rand.Rand
	every time.Duration // on average
	s3    bool          // the S3 server is fair game
	api   bool          // the API server too
}

func (c *chaos) run(ctx context.Context) {
	f := c.w.fleet
	for {
		select {
		case <-time.After(time.Duration(float64(c.every) * (0.3 + 1.4*c.dice.Float64()))):
		case <-ctx.Done():
			return
		}
		var who []*slot
		throw := c.dice.IntN(100)
		switch {
		case throw < 66:
			who = f.of(sidecar)
		case throw < 84:
			who = f.of(driverRole)
		default:
			who = f.of(controller)
		}
		if len(who) == 0 {
			continue
		}
		s := who[c.dice.IntN(len(who))]
		if s.age() < grown && c.dice.IntN(5) > 0 {
			continue // mostly it is let get to work first
		}
		switch what := c.dice.IntN(100); {
		case what < 2 && c.s3:
			if c.w.lab.S3.Process().Kill() == nil {
				f.count("kill -9 S3 server", 1)
			}
			if err := c.w.lab.S3.Restart(context.WithoutCancel(ctx)); err != nil {
				c.w.t.Errorf("restart the S3 server: %v", err)
			}
		case what < 3 && c.api:
			c.killAPI(context.WithoutCancel(ctx))
		case what < 65:
			if s.kill() {
				f.count("kill -9 "+string(s.role), 1)
			}
		case what < 85 || s.door == nil:
			long := 100*time.Millisecond + time.Duration(c.dice.Int64N(int64(2*time.Second)))
			if c.dice.IntN(4) == 0 && s.role == sidecar {
				long += lease // it loses the lead in its sleep
			}
			if s.freeze(ctx, long) {
				f.count("freeze "+string(s.role), 1)
			}
		default:
			s.door.Cut()
			f.count("cut off "+string(s.role), 1)
			long := 200*time.Millisecond + time.Duration(c.dice.Int64N(int64(lease)))
			time.AfterFunc(long, s.door.Mend)
		}
	}
}

// killAPI kills the API server and starts it again.
func (c *chaos) killAPI(ctx context.Context) {
	if err := c.w.lab.Kube.KillAPIServer(); err != nil {
		c.w.t.Errorf("kill the API server: %v", err)
	}
	c.w.fleet.count("kill -9 API server", 1)
	var err error
	for range 5 { // a machine that is busy enough makes it slower than StartProcess waits
		if err = c.w.lab.Kube.RestartAPIServer(ctx); err == nil {
			return
		}
	}
	c.w.t.Errorf("restart the API server: %v", err)
}
