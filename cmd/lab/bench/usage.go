package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks a second in which Linux counts a process's time in /proc; it is 100 on
// every platform that Go knows.
const ticks = 100

// cpuTime is what a process has used so far, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	// proc(5): the second field, the program's name, ends with the last parenthesis.
	_, rest, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("CPU time of process %d: can't read /proc: %q", pid, text)
	}
	var sum int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
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
