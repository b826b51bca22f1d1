//go:build !linux

package cutproxy

import (
	"net"
	"time"
)

// settle gives what was written a while to arrive: a reset throws away what is
// still on its way, and there is no way to ask.
func settle(*net.TCPConn) { time.Sleep(50 * time.Millisecond) }
