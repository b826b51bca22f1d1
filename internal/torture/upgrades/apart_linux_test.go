package upgrades

import (
	"os/exec"
	"sync"
	"syscall"
)

// apart puts a process into a namespace of its own, where it sees no others, as on
// another machine: whether those live, only their heartbeats tell.
var apart = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}

// canBeRemote tells whether the system lets processes be apart.
var canBeRemote = sync.OnceValue(func() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = apart
	return cmd.Run() == nil
})
