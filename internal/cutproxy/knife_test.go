package cutproxy

import (
	"io"
	"net"
	"slices"
	"testing"
)

// TestKnife: what is noted once is cut at each edge, in its direction, once.
func TestKnife(t *testing.T) {
	query, ready := "Q\x00\x00\x00\x07ab\x00", "Z\x00\x00\x00\x05I"
	startup := "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00"
	k := &Knife{}
	p := Start(t, Options{Protocol: Postgres, Fate: k.Fate, Target: listen(t, func(c net.Conn) {
		io.ReadFull(c, make([]byte, len(startup)))
		io.ReadFull(c, make([]byte, len(query)))
		c.Write([]byte(ready))
		io.Copy(io.Discard, c)
	})})
	talk := func() int {
		c := dial(t, p.Addr())
		c.Write([]byte(startup + query))
		b := make([]byte, len(ready))
		n, _ := io.ReadFull(c, b)
		c.Close()
		return n
	}
	k.Note()
	if n := talk(); n != len(ready) {
		t.Fatalf("%d bytes came without a cut", n)
	}
	messages := k.Noted()
	if len(messages) != 3 {
		t.Fatalf("noted %v", messages)
	}
	var want []Place
	for i, sizes := range [][]int64{{0, 1, 12, 13}, {0, 1, 7, 8}, {0, 1, 5, 6}} {
		kind := []Kind{{ToServer, 0, 0}, {ToServer, 0, 'Q'}, {ToClient, 0, 'Z'}}[i]
		for _, n := range sizes {
			want = append(want, Place{kind, 0, n})
		}
	}
	if got := Edges(messages); !slices.Equal(got, want) {
		t.Fatalf("edges %v", got)
	}
	if n := len(Everywhere(messages)); n != 14+9+7 {
		t.Errorf("%d places in all", n)
	}
	for _, at := range want {
		k.Arm(at)
		n := talk()
		m := k.Disarm()
		if m == nil || m.Way != at.Way || m.Type != at.Type {
			t.Fatalf("%v: cut %v", at, m)
		}
		if at.Way == ToClient && n != int(at.After) || at.Way == ToServer && at.After < m.Size() && n != 0 {
			t.Errorf("%v: %d bytes came", at, n)
		}
		if n := talk(); n != len(ready) {
			t.Fatalf("%v: cut twice", at)
		}
	}
}
