package main

import (
	"syscall"
	"time"
	"unsafe"
)

// threadCPU is the time that this thread has taken so far.
func threadCPU() time.Duration {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic(errno) // the arguments are right
	}
	return time.Duration(t.Nano())
}
