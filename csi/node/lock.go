package node

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Locks lets one operation for a volume run at a time. The zero value is ready.
type Locks struct {
	mu    sync.Mutex
	taken map[string]string
}

// Take locks a volume for an operation, or answers ABORTED at once with the operation that has it, as the CSI spec asks
// for (Error Scheme, "Operation pending for volume"). Every operation ends, so the next try goes on.
func (l *Locks) Take(volume, operation string) (unlock func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, ok := l.taken[volume]; ok {
		return nil, status.Errorf(codes.Aborted, "volume %s: %s is under way; try again", volume, other)
	}
	if l.taken == nil {
		l.taken = map[string]string{}
	}
	l.taken[volume] = operation
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.taken, volume)
	}, nil
}
