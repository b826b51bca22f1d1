package cutproxy

import (
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
)

// Connection is one that the proxy has accepted.
type Connection struct {
	Number int // from 1
	proxy  *Proxy
	fate   Fate
	client *net.TCPConn

	mu       sync.Mutex
	server   *net.TCPConn // nil until it is connected
	once     sync.Once
	ended    chan struct{}
	passed   [2]atomic.Int64
	stalling [2]atomic.Bool
}

// Passed is the number of bytes that have gone a direction.
func (c *Connection) Passed(way Direction) int64 { return c.passed[way].Load() }

// Stalled tells whether a direction stands still.
func (c *Connection) Stalled(way Direction) bool { return c.stalling[way].Load() }

// Ended is closed once the connection is cut, or was closed by both ends.
func (c *Connection) Ended() <-chan struct{} { return c.ended }

// run forwards both directions until the connection ends.
func (c *Connection) run(target string) {
	defer c.reset()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.server = server.(*net.TCPConn)
	c.mu.Unlock()
	select {
	case <-c.ended: // cut before it was known
		c.server.SetLinger(0)
		c.server.Close()
		return
	default:
	}
	t := &talk{requests: map[int32]Message{}}
	var both sync.WaitGroup
	var clean [2]bool
	both.Go(func() { clean[ToServer] = c.forward(ToServer, c.client, c.server, t) })
	both.Go(func() { clean[ToClient] = c.forward(ToClient, c.server, c.client, t) })
	both.Wait()
	if clean[ToServer] && clean[ToClient] {
		c.end(func(end *net.TCPConn) { end.Close() })
	}
}

// reset ends the connection; both ends see a reset unless they have closed it.
func (c *Connection) reset() {
	c.end(func(end *net.TCPConn) {
		end.SetLinger(0)
		end.Close()
	})
}

// end closes both ends, once.
func (c *Connection) end(closing func(*net.TCPConn)) {
	c.once.Do(func() {
		close(c.ended)
		c.mu.Lock()
		defer c.mu.Unlock()
		closing(c.client)
		if c.server != nil {
			closing(c.server)
		}
	})
}

// flow is one direction of a connection.
type flow struct {
	*Connection
	way    Direction
	to     *net.TCPConn
	framer framer // nil: messages are not told apart
	index  int    // of the next message
	next   int64  // the offset that the next message begins at
	at     int64  // the offset to act at
	act    Act
	broken bool // it can't go on
}

// forward copies bytes until one end closes, or the fate cuts. It tells whether
// the direction came to its end undisturbed.
func (c *Connection) forward(way Direction, from, to *net.TCPConn, t *talk) (clean bool) {
	f := &flow{Connection: c, way: way, to: to, framer: newFramer(c.proxy.options.Protocol, way, t), at: math.MaxInt64}
	if c.fate.Act != Pass && c.fate.Way == way {
		f.act, f.at = c.fate.Act, c.fate.After
	}
	f.send(nil) // acts before the first byte
	buffer := make([]byte, 0, 64<<10)
	for !f.broken {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		buffer = append(buffer[:0], f.pass(buffer)...)
		if err == nil {
			continue
		}
		f.send(buffer) // an end in the middle of a head
		if err == io.EOF && !f.broken && to.CloseWrite() == nil {
			return true
		}
		break
	}
	c.reset()
	return false
}

// pass sends bytes on, and returns those that are held back: the beginning of a
// head that is not complete.
func (f *flow) pass(b []byte) []byte {
	for len(b) > 0 && !f.broken {
		n, held := f.scan(b)
		f.send(b[:n])
		b = b[n:]
		if held {
			return b
		}
	}
	return nil
}

// scan looks at the heads among bytes to be sent. It returns how many of the bytes
// may go now, and whether the others are held back until more have come.
func (f *flow) scan(b []byte) (n int, held bool) {
	start := f.passed[f.way].Load()
	for f.framer != nil && f.next < start+int64(len(b)) {
		if f.next >= f.at { // what comes behind the act is looked at when that is done
			return int(f.at - start), false
		}
		m, size, known, opaque := f.framer.frame(b[f.next-start:])
		if opaque {
			f.framer = nil
			break
		}
		if !known {
			return int(f.next - start), true
		}
		m.Connection, m.Way, m.Index, m.Start, m.End = f.Number, f.way, f.index, f.next, f.next+size
		f.index++
		f.next = m.End
		f.proxy.note(m)
		if f.fate.When == nil || f.act != Pass {
			continue
		}
		if act, after := f.fate.When(m); act != Pass {
			f.act, f.at = act, m.Start+min(after, size)
		}
	}
	return len(b), false
}

// send passes bytes on, and acts where it is time to.
func (f *flow) send(b []byte) {
	passed := &f.passed[f.way]
	for !f.broken {
		part := b[:min(int64(len(b)), f.at-passed.Load())]
		n, err := f.to.Write(part)
		passed.Add(int64(n))
		b = b[n:]
		switch {
		case err != nil:
			f.broken = true
		case passed.Load() < f.at:
			return
		case f.act == Cut:
			settle(f.to)
			f.broken = true
		default:
			f.act, f.at = Pass, math.MaxInt64
			f.proxy.stall(f.Connection, &f.stalling[f.way])
		}
	}
}
