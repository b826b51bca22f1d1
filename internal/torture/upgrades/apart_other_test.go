//go:build !linux

package upgrades

import "syscall"

var apart *syscall.SysProcAttr

func canBeRemote() bool { return false }
