//go:build !linux

package main

import "time"

// threadCPU has no clock here: the figure that needs it stays 0.
func threadCPU() time.Duration { return 0 }
