//go:build !linux

package embedded

import "syscall"

// Only Linux kills a child when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
