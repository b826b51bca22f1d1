package cutproxy

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

const (
	// unsent is the request for the number of bytes that a socket has not sent
	// yet, SIOCOUTQNSD.
	unsent = 0x894B
	// maxSettle bounds the wait for a peer that doesn't read.
	maxSettle = time.Second
)

// settle waits until the peer's side has what was written: a reset throws away
// what is still on its way.
func settle(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	for end := time.Now().Add(maxSettle); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var left int32
		err := raw.Control(func(fd uintptr) {
			syscall.Syscall(syscall.SYS_IOCTL, fd, unsent, uintptr(unsafe.Pointer(&left)))
		})
		if err != nil || left == 0 {
			return
		}
	}
}
