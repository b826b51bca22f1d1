package cutproxy

import (
	"fmt"
	"sync"
)

// Knife cuts connections where a test says, message by message: the test has it
// note the messages of something that it does, and then does the same again and
// again, with a cut at each of the places in them. Its Fate is the proxy's, which
// needs a protocol.
type Knife struct {
	mu    sync.Mutex
	noted []Message
	armed bool
	place Place
	seen  map[Kind]int // messages since Note or Arm
	cut   *Message
}

// Kind is what messages are counted by: over all connections, since two of them
// may speak at once.
type Kind struct {
	Way  Direction
	Key  int16 // of Kafka's
	Type byte  // of PostgreSQL's
}

// Place is where a connection is to be cut: after so many bytes of a message,
// which is the n-th of its kind, from 0.
type Place struct {
	Kind
	Nth   int
	After int64
}

func kindOf(m Message) Kind { return Kind{m.Way, m.Key, m.Type} }

// String names the place.
func (p Place) String() string {
	kind := fmt.Sprintf("key %d", p.Key)
	if p.Type != 0 {
		kind = fmt.Sprintf("type %q", p.Type)
	}
	return fmt.Sprintf("%v, message %d of %s, byte %d", p.Way, p.Nth, kind, p.After)
}

// Fate asks the knife about each message. It is an Options.Fate.
func (k *Knife) Fate(int) Fate { return Fate{When: k.when} }

func (k *Knife) when(m Message) (Act, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = map[Kind]int{}
	}
	kind := kindOf(m)
	nth := k.seen[kind]
	k.seen[kind]++
	if len(k.noted) < maxMessages {
		k.noted = append(k.noted, m)
	}
	if !k.armed || kind != k.place.Kind || nth != k.place.Nth {
		return Pass, 0
	}
	k.armed, k.cut = false, &m
	return Cut, k.place.After
}

// Note begins to note messages anew, and cuts nothing.
func (k *Knife) Note() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noted, k.armed, k.seen, k.cut = nil, false, nil, nil
}

// Noted are the messages since Note or Arm.
func (k *Knife) Noted() []Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]Message(nil), k.noted...)
}

// Arm begins to note messages anew, and cuts at a place in those to come, once.
func (k *Knife) Arm(at Place) {
	k.Note()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.place = true, at
}

// Disarm ends that, and returns the message that was cut; nil if that place did
// not come.
func (k *Knife) Disarm() *Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = false
	return k.cut
}

// Edges are the places at the messages' edges: before and behind each, and a byte
// away from these inside of it.
func Edges(messages []Message) []Place {
	return places(messages, func(size int64) []int64 { return []int64{0, 1, size - 1, size} })
}

// Everywhere are the places at each byte of the messages.
func Everywhere(messages []Message) []Place {
	return places(messages, func(size int64) (all []int64) {
		for n := range size + 1 {
			all = append(all, n)
		}
		return all
	})
}

func places(messages []Message, of func(size int64) []int64) (all []Place) {
	seen := map[Kind]int{}
	for _, m := range messages {
		last := int64(-1)
		for _, n := range of(m.Size()) {
			if n <= last {
				continue // one of few bytes
			}
			last = n
			all = append(all, Place{kindOf(m), seen[kindOf(m)], n})
		}
		seen[kindOf(m)]++
	}
	return all
}
