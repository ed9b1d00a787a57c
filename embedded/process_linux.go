package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// allStopped says whether each thread of a process stands still, or is gone.
func allStopped(pid int) (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return false, err
		}
		// pid (name) state ...: proc(5). The name may hold anything, a bracket too.
		state := string(text)
		state = strings.TrimSpace(state[strings.LastIndex(state, ")")+1:])
		if state != "" && !strings.Contains("TtZXx", state[:1]) {
			return false, nil
		}
	}
	return true, nil
}
