package cutproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// listen is a server that hands each connection to a function.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(patience))
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

// dial connects. A connection that is reset at once may be so before Dial returns,
// which then fails; that counts as one that reads nothing but the reset.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return stillborn{err: err}
	}
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// stillborn is a connection that was reset while it was made.
type stillborn struct {
	net.Conn
	err error
}

func (s stillborn) Read([]byte) (int, error)  { return 0, s.err }
func (s stillborn) Write([]byte) (int, error) { return 0, s.err }
func (s stillborn) Close() error              { return nil }
func (s stillborn) CloseWrite() error         { return s.err }

// closeWrite says that nothing more comes.
func closeWrite(c net.Conn) { c.(interface{ CloseWrite() error }).CloseWrite() }

// arrival is what one end has read, and how that ended.
type arrival struct {
	bytes []byte
	err   error
}

func readAll(c net.Conn) arrival {
	b, err := io.ReadAll(c)
	return arrival{b, err}
}

func (a arrival) check(t *testing.T, who string, want []byte) {
	t.Helper()
	if !bytes.Equal(a.bytes, want) {
		t.Errorf("%s got %d bytes, not the first %d", who, len(a.bytes), len(want))
	}
	if !errors.Is(a.err, syscall.ECONNRESET) {
		t.Errorf("%s sees %v, not a reset", who, a.err)
	}
}

// noise are bytes that tell where they are from.
func noise(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(b)
	return b
}

func TestCutsAtTheByte(t *testing.T) {
	sent := noise(3 << 20) // more than the buffers on the way hold
	for _, n := range []int{0, 1, 2, 65535, 65536, 65537, 1 << 20, len(sent) - 1, len(sent)} {
		t.Run(fmt.Sprint("to server ", n), func(t *testing.T) {
			got := make(chan arrival, 1)
			p := Start(t, Options{
				Target: listen(t, func(c net.Conn) { got <- readAll(c) }),
				Fate:   func(int) Fate { return CutAfter(ToServer, int64(n)) },
			})
			c := dial(t, p.Addr())
			go c.Write(sent) // ends when the connection is cut
			(<-got).check(t, "the server", sent[:n])
			readAll(c)
			connection := p.Connections()[0]
			<-connection.Ended()
			if passed := connection.Passed(ToServer); passed != int64(n) {
				t.Errorf("%d bytes are counted", passed)
			}
		})
		t.Run(fmt.Sprint("to client ", n), func(t *testing.T) {
			p := Start(t, Options{
				Target: listen(t, func(c net.Conn) { io.ReadFull(c, make([]byte, 1)); c.Write(sent); io.Copy(io.Discard, c) }),
				Fate:   func(int) Fate { return CutAfter(ToClient, int64(n)) },
			})
			c := dial(t, p.Addr())
			c.Write([]byte{1})
			readAll(c).check(t, "the client", sent[:n])
		})
	}
}

// echo answers with what it reads.
func echo(c net.Conn) { io.Copy(c, c) }

func TestForwardsWholeConnections(t *testing.T) {
	p := Start(t, Options{Target: listen(t, echo)})
	sent := noise(1 << 20)
	for range 3 {
		c := dial(t, p.Addr())
		go func() {
			c.Write(sent)
			closeWrite(c)
		}()
		got := readAll(c)
		if got.err != nil || !bytes.Equal(got.bytes, sent) {
			t.Fatalf("%d bytes came back, %v", len(got.bytes), got.err)
		}
	}
	for _, c := range p.Connections() {
		<-c.Ended()
		if c.Passed(ToServer) != 1<<20 || c.Passed(ToClient) != 1<<20 {
			t.Errorf("connection %d counted %d and %d bytes", c.Number, c.Passed(ToServer), c.Passed(ToClient))
		}
	}
}

func TestFateIsOfOneConnection(t *testing.T) {
	p := Start(t, Options{Target: listen(t, echo), Fate: func(k int) Fate {
		switch k {
		case 2:
			return Fate{Refuse: true}
		case 3:
			return CutAfter(ToClient, 3)
		}
		return Fate{}
	}})
	for k, want := range []string{"", "hello", "", "hel", "hello"} {
		if k == 0 {
			continue
		}
		c := dial(t, p.Addr())
		c.Write([]byte("hello"))
		closeWrite(c)
		got := readAll(c)
		if string(got.bytes) != want || (got.err == nil) != (want == "hello") {
			t.Errorf("connection %d: %q, %v", k, got.bytes, got.err)
		}
	}
}

func TestStallsUntilReleased(t *testing.T) {
	p := Start(t, Options{Target: listen(t, echo), Fate: func(int) Fate { return StallAfter(ToClient, 4) }})
	c := dial(t, p.Addr())
	c.Write([]byte("abcdefgh"))
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "abcd" {
		t.Fatalf("%q, %v", b, err)
	}
	c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Read(b); n != 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Fatalf("%d bytes come while it stalls, %v", n, err)
	}
	if !p.Connections()[0].Stalled(ToClient) || p.Connections()[0].Stalled(ToServer) {
		t.Error("the proxy doesn't know what stalls")
	}
	p.Release()
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "efgh" {
		t.Fatalf("%q, %v", b, err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func TestCutAllAndDial(t *testing.T) {
	first := listen(t, func(c net.Conn) { c.Write([]byte("1")); echo(c) })
	second := listen(t, func(c net.Conn) { c.Write([]byte("2")); echo(c) })
	p := Start(t, Options{Target: "127.0.0.1:1"}) // nobody is there: what Dial asks for counts
	var open []net.Conn
	for want, addr := range map[string]string{"1": first, "2": second} {
		c, err := p.Dial(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		b := make([]byte, 1)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
			t.Fatalf("%s answers %q, %v", addr, b, err)
		}
		open = append(open, c)
	}
	p.CutAll()
	for _, c := range open {
		readAll(c).check(t, "the client", []byte{})
	}
	if got := readAll(dial(t, p.Addr())); !errors.Is(got.err, syscall.ECONNRESET) {
		t.Errorf("without a server: %v", got.err)
	}
	p.Forward(first)
	c := dial(t, p.Addr())
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "1" {
		t.Errorf("after Forward: %q, %v", b, err)
	}
}

// kafkaFrame is a message of Kafka with its length.
func kafkaFrame(head string, body int) string {
	text := head + strings.Repeat("x", body)
	return string([]byte{0, 0, byte(len(text) >> 8), byte(len(text))}) + text
}

func TestMessagesOfKafka(t *testing.T) {
	// key 18 version 3 correlation 7, and key 26 version 4 correlation 8
	requests := []string{kafkaFrame("\x00\x12\x00\x03\x00\x00\x00\x07", 30), kafkaFrame("\x00\x1a\x00\x04\x00\x00\x00\x08", 500)}
	responses := []string{kafkaFrame("\x00\x00\x00\x07", 900), kafkaFrame("\x00\x00\x00\x08", 2)}
	asked := strings.Join(requests, "")
	answers := strings.Join(responses, "")
	p := Start(t, Options{
		Protocol: Kafka, Record: true,
		Target: listen(t, func(c net.Conn) {
			io.ReadFull(c, make([]byte, len(asked)))
			c.Write([]byte(answers))
			io.Copy(io.Discard, c)
		}),
		Fate: func(int) Fate {
			return Fate{When: func(m Message) (Act, int64) {
				if m.Way == ToClient && m.Key == 26 {
					return Cut, 5
				}
				return Pass, 0
			}}
		},
	})
	c := dial(t, p.Addr())
	for i := range asked { // in the smallest pieces
		c.Write([]byte{asked[i]})
	}
	readAll(c).check(t, "the client", []byte(answers[:len(responses[0])+5]))
	var got []string
	for _, m := range p.Messages() {
		got = append(got, m.String())
	}
	want := []string{
		"connection 1 to server, message 0 at 0 to 42, key 18 version 3",
		"connection 1 to server, message 1 at 42 to 554, key 26 version 4",
		"connection 1 to client, message 0 at 0 to 908, key 18 version 3",
		"connection 1 to client, message 1 at 908 to 918, key 26 version 4",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded:\n%s", strings.Join(got, "\n"))
	}
}

func TestEveryMessageIsAsked(t *testing.T) {
	const n = 20
	var all string
	for i := range n {
		all += kafkaFrame("\x00\x00\x00\x00\x00\x00\x00"+string(rune(i)), i*3)
	}
	got := make(chan arrival, 1)
	asked := make(chan int, 2*n)
	p := Start(t, Options{
		Protocol: Kafka,
		Target:   listen(t, func(c net.Conn) { got <- readAll(c) }),
		Fate: func(int) Fate {
			return Fate{When: func(m Message) (Act, int64) {
				asked <- m.Index
				return Stall, int64(m.Index % 15) // also before the first byte
			}}
		},
	})
	c := dial(t, p.Addr())
	c.Write([]byte(all))
	for i := range n {
		if index := <-asked; index != i {
			t.Fatalf("message %d is asked about instead of %d", index, i)
		}
		for end := time.Now().Add(patience); !p.Connections()[0].Stalled(ToServer); {
			if time.Now().After(end) {
				t.Fatalf("message %d doesn't stall", i)
			}
		}
		p.Release()
	}
	c.Close()
	if a := <-got; string(a.bytes) != all {
		t.Errorf("%d of %d bytes arrived, %v", len(a.bytes), len(all), a.err)
	}
}

func TestMessagesOfPostgres(t *testing.T) {
	startup := "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00"
	query := "Q\x00\x00\x00\x0dselect 1\x00"
	ready := "Z\x00\x00\x00\x05I"
	p := Start(t, Options{
		Protocol: Postgres, Record: true,
		Target: listen(t, func(c net.Conn) {
			io.ReadFull(c, make([]byte, 8))
			c.Write([]byte("N"))
			io.ReadFull(c, make([]byte, len(startup)+len(query)))
			c.Write([]byte(ready))
		}),
	})
	c := dial(t, p.Addr())
	c.Write([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f"))
	io.ReadFull(c, make([]byte, 1))
	c.Write([]byte(startup + query))
	if got := readAll(c); string(got.bytes) != ready {
		t.Fatalf("%q, %v", got.bytes, got.err)
	}
	var got []string
	for _, m := range p.Messages() {
		got = append(got, fmt.Sprintf("%v %d %d %q", m.Way, m.Start, m.End, m.Type))
	}
	want := []string{
		`to server 0 8 '\x00'`, `to client 0 1 'N'`, `to server 8 21 '\x00'`, `to server 21 35 'Q'`, `to client 1 7 'Z'`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded:\n%s", strings.Join(got, "\n"))
	}
}
