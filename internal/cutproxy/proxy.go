package cutproxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Options say how a proxy is.
type Options struct {
	// Target is the server's address. Forward can name it later.
	Target string
	// Protocol is how messages are told apart. Defaults to Bytes, which has none.
	Protocol Protocol
	// Fate decides about the connection of a number, from 1. Defaults to forwarding
	// all. SetFate replaces it.
	Fate func(connection int) Fate
	// Record has Messages keep what goes by. Defaults to keeping nothing.
	Record bool
}

// Proxy is a running proxy. Its methods may be called from several goroutines.
type Proxy struct {
	listener net.Listener
	options  Options

	mu       sync.Mutex
	target   string
	fate     func(int) Fate
	dialed   map[string]string // where a connection of Dial is to go, by its own address
	accepted []*Connection
	messages []Message
	closed   bool
	released chan struct{} // closed when what stalls may go on
	tasks    sync.WaitGroup
}

// maxMessages bounds what is recorded; what comes after is forwarded all the same.
const maxMessages = 1 << 20

// Start starts a proxy on a free port, and ends it with the test.
func Start(tb testing.TB, o Options) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: listener, options: o, target: o.Target, fate: o.Fate, dialed: map[string]string{}, released: make(chan struct{})}
	p.tasks.Go(p.accept)
	tb.Cleanup(p.Close)
	return p
}

// Addr is the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Forward names the server's address, for connections to come.
func (p *Proxy) Forward(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// SetFate replaces what decides about connections to come. Their numbers go on.
func (p *Proxy) SetFate(fate func(connection int) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fate = fate
}

// Dial connects to an address through the proxy, as the dialer of a client
// library does. Of several brokers each is reached at its own address.
func (p *Proxy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	// What accepts the connection waits for the lock, and then finds where it goes.
	p.mu.Lock()
	defer p.mu.Unlock()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, p.Addr())
	if err != nil {
		return nil, fmt.Errorf("dial %s through the proxy: %w", address, err)
	}
	p.dialed[c.LocalAddr().String()] = address
	return c, nil
}

// CutAll cuts all connections that are open.
func (p *Proxy) CutAll() {
	for _, c := range p.Connections() {
		c.reset()
	}
}

// Release lets connections that have stalled go on; those that stall later do so
// until the next Release.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.released)
	p.released = make(chan struct{})
}

// Connections are those that were accepted, the first one numbered 1.
func (p *Proxy) Connections() []*Connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Connection(nil), p.accepted...)
}

// Messages are those that were recorded so far, in the order of their heads.
func (p *Proxy) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.messages...)
}

// Close ends the proxy and its connections, and waits until they have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.CutAll()
	p.tasks.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		c, target := p.admit(client.(*net.TCPConn))
		if c == nil {
			continue
		}
		p.tasks.Go(func() { c.run(target) })
	}
}

// admit numbers a connection, and settles where it goes and what becomes of it.
func (p *Proxy) admit(client *net.TCPConn) (*Connection, string) {
	p.mu.Lock()
	from := client.RemoteAddr().String()
	target, dialed := p.dialed[from]
	delete(p.dialed, from)
	if !dialed {
		target = p.target
	}
	c := &Connection{Number: len(p.accepted) + 1, proxy: p, client: client, ended: make(chan struct{})}
	p.accepted = append(p.accepted, c)
	fate, closed := p.fate, p.closed
	p.mu.Unlock()
	if fate != nil {
		c.fate = fate(c.Number) // not under the lock: it may ask the proxy
	}
	if c.fate.Refuse || closed {
		c.reset()
		return nil, ""
	}
	return c, target
}

// note records a message.
func (p *Proxy) note(m Message) {
	if !p.options.Record {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.messages) < maxMessages {
		p.messages = append(p.messages, m)
	}
}

// stall waits for Release, or for the connection's end. Whoever has seen that it does so
// can release it.
func (p *Proxy) stall(c *Connection, stalling *atomic.Bool) {
	p.mu.Lock()
	released := p.released
	p.mu.Unlock()
	stalling.Store(true)
	defer stalling.Store(false)
	select {
	case <-released:
	case <-c.ended:
	}
}
