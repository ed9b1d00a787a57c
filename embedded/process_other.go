//go:build !linux

package embedded

import "syscall"

// Only Linux kills a child when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Elsewhere a signal that was sent has to do.
func allStopped(int) (bool, error) { return true, nil }
