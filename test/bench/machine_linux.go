package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// syncData has what was written to a file on the disk, without its times.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// loadAverage returns the load average of the last minute, or 0 if it is unknown.
func loadAverage() (load float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &load)
	return load
}

// processors reads what became of the processors' time since the machine was started.
func processors() (ticks, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	const stolen = 8 // after "cpu", user, nice, system, idle, iowait, irq, softirq
	if len(fields) <= stolen {
		return ticks{}, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var t ticks
	for n, field := range fields[1 : stolen+1] {
		count, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return ticks{}, fmt.Errorf("/proc/stat begins with %q: %w", line, err)
		}
		t.all += count
		if n+1 == stolen {
			t.stolen = count
		}
	}
	return t, nil
}
