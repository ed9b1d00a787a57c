package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks a second in which Linux counts a process's time in /proc; it is 100 on
// every platform that Go knows.
const ticks = 100

// cpu is CPU time in user and kernel mode, by the name of the process.
type cpu map[string]time.Duration

// cpuOfAll is what this process and its children have used so far. They go by the
// name of their program, unless names has another.
func cpuOfAll(names map[int]string) (cpu, error) {
	self := os.Getpid()
	all := cpu{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// proc(5): the second field is the program's name, in parentheses.
		open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
		if open < 0 || end < open {
			continue
		}
		name := string(text[open+1 : end])
		var pid, parent int
		if _, err := fmt.Sscan(string(text[:open]), &pid); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		var state string
		var skip, user, kernel int64
		if _, err := fmt.Sscan(string(text[end+1:]), &state, &parent, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &user, &kernel); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if pid != self && parent != self {
			continue
		}
		if given := names[pid]; given != "" {
			name = given
		}
		all[name] += time.Duration(user+kernel) * time.Second / ticks
	}
	if len(all) == 0 {
		return nil, errors.New("CPU time of processes: there is no /proc to read it from: this needs Linux")
	}
	return all, nil
}
func (c cpu) since(before cpu) cpu {
	d := cpu{}
	for name, t := range c {
		d[name] = t - before[name]
	}
	return d
}

func (c cpu) sum() (all time.Duration) {
	for _, t := range c {
		all += t
	}
	return all
}

// peakMB is the most memory that a process has had resident so far, in 1e6 bytes.
func peakMB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("memory of process %d: no VmHWM in /proc: this needs Linux", pid)
}
