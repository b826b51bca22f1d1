package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu is the time that this process has taken so far, user and system. What
// another of its threads takes is counted late, when that sleeps or the system's
// clock ticks.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settledCPU is cpu for times of milliseconds: it first lets the other threads
// fall asleep, which they do once they have nothing to do.
func settledCPU() time.Duration {
	time.Sleep(5 * time.Millisecond)
	return cpu()
}

// peakMemory is the most memory that this process has had so far, in bytes.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
