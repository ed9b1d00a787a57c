package driver

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// names keeps calls of one name apart and knows of each name whether a create runs, or may still land.
// An entry lives while somebody uses it or it is unsettled.
type names struct {
	settle time.Duration
	now    func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one name. Everything but turn is guarded by names.mu.
type entry struct {
	turn      chan struct{} // holds a token while a call has its turn
	users     int           // who holds or waits for the turn
	creating  bool          // the holder is a create
	deletions uint64        // how many deletes by name answered OK while somebody waited
	unsettled time.Time     // until then a create without an answer may still land
}

// turn is held by the one call of a name that may run.
type turn struct {
	n   *names
	key string
	e   *entry
}

func newNames(settle time.Duration, now func() time.Time) *names {
	return &names{settle: settle, now: now, entries: map[string]*entry{}}
}

// create waits for the turn of a create. One that waited through a delete by name is given up: the
// delete's OK promised that it would not land.
func (n *names) create(ctx context.Context, key string) (*turn, error) {
	t, seen, err := n.take(ctx, key, nil)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	late := t.e.deletions != seen
	t.e.creating = !late
	n.mu.Unlock()
	if late {
		t.done()
		return nil, status.Error(codes.Aborted, "this create waited while the name was deleted, and was given up; nothing was made by it")
	}
	return t, nil
}

// byName waits for the turn of a call by name. It does not wait for a create.
func (n *names) byName(ctx context.Context, key string) (*turn, error) {
	t, _, err := n.take(ctx, key, func(e *entry) error {
		if e.creating {
			return status.Error(codes.Aborted, "a create of this name is running; call again when it has ended")
		}
		return nil
	})
	return t, err
}

// other waits for the turn of any other call.
func (n *names) other(ctx context.Context, key string) (*turn, error) {
	t, _, err := n.take(ctx, key, nil)
	return t, err
}

// take waits for the turn. refuse, which may be nil, is asked before the wait. deletions is their number
// when the call arrived.
func (n *names) take(ctx context.Context, key string, refuse func(*entry) error) (t *turn, deletions uint64, err error) {
	n.mu.Lock()
	e := n.entries[key]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1)}
		n.entries[key] = e
	}
	if refuse != nil {
		err = refuse(e)
	}
	e.users++
	deletions = e.deletions
	n.mu.Unlock()
	if err == nil {
		select {
		case e.turn <- struct{}{}:
			return &turn{n, key, e}, deletions, nil
		case <-ctx.Done():
			err = status.Error(status.FromContextError(ctx.Err()).Code(), "gave up waiting for another call of this name; this call did nothing")
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(key, e)
	return nil, 0, err
}

// leave forgets an entry that nobody needs. n.mu is held.
func (n *names) leave(key string, e *entry) {
	e.users--
	if e.users > 0 {
		return
	}
	if wait := e.unsettled.Sub(n.now()); wait > 0 {
		e.users++ // the timer is a user
		time.AfterFunc(wait, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.leave(key, e)
		})
		return
	}
	delete(n.entries, key)
}

// unanswered notes that the create that has this turn may still land.
func (t *turn) unanswered() {
	t.n.mu.Lock()
	defer t.n.mu.Unlock()
	t.e.unsettled = t.n.now().Add(t.n.settle)
}

// unsettled is how long an earlier create of the name may still land; 0 or less if none may.
func (t *turn) unsettled() time.Duration {
	t.n.mu.Lock()
	defer t.n.mu.Unlock()
	return t.e.unsettled.Sub(t.n.now())
}

// deleted gives up every create that waits.
func (t *turn) deleted() {
	t.n.mu.Lock()
	defer t.n.mu.Unlock()
	t.e.deletions++
}

// done ends the turn.
func (t *turn) done() {
	t.n.mu.Lock()
	defer t.n.mu.Unlock()
	t.e.creating = false
	<-t.e.turn
	t.n.leave(t.key, t.e)
}
