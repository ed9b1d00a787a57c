package toolbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes a file lock. The kernel drops it when this process dies, and it is
// not inherited by the compiler. The file itself is left in place: removing it
// would let a third process lock another file of the same name.
func (b *Box) lock(ctx context.Context, file string, t tool) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the build's lock: %w", err)
	}
	unlock = func() { _ = f.Close() } // closing unlocks; nothing was written

	var show *progress
	defer func() {
		if show != nil {
			show.stop(err == nil)
		}
	}()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return unlock, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			unlock()
			return nil, fmt.Errorf("lock %s: %w", file, err)
		}
		if show == nil {
			show = startProgress(b.out, "waiting for another process that builds "+t.name)
		}
		select {
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("wait for another process that builds it (lock %s): %w", file, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
