package cutproxy

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Protocol is how messages are told apart.
type Protocol int

// The protocols.
const (
	Bytes    Protocol = iota // no messages
	Kafka                    // requests and responses
	Postgres                 // version 3, as long as it isn't encrypted
)

// Message is one message of a protocol.
type Message struct {
	Connection int // from 1
	Way        Direction
	Index      int   // of its direction, from 0
	Start, End int64 // offsets in the bytes of its direction; the byte at End is the next one's
	// Key and Version are a Kafka request's, and of a response those of the request
	// that it answers; Correlation is the number that the two share. Key is -1 for
	// a response to nothing.
	Key, Version int16
	Correlation  int32
	// Type is a PostgreSQL message's; 0 for those that come before there are types.
	Type byte
}

// Size is the number of its bytes, its length field among them.
func (m Message) Size() int64 { return m.End - m.Start }

// String names the message and its place.
func (m Message) String() string {
	kind := fmt.Sprintf("key %d version %d", m.Key, m.Version)
	if m.Type != 0 {
		kind = fmt.Sprintf("type %q", m.Type)
	}
	return fmt.Sprintf("connection %d %v, message %d at %d to %d, %s", m.Connection, m.Way, m.Index, m.Start, m.End, kind)
}

// framer reads the heads of one direction's messages.
type framer interface {
	// frame reads the head at the start of the bytes. It is not known while more
	// bytes are needed; opaque says that nothing from here on can be told apart.
	frame(b []byte) (m Message, size int64, known, opaque bool)
}

// talk is what the two directions of a connection know of each other.
type talk struct {
	mu       sync.Mutex
	requests map[int32]Message // Kafka's that are not answered yet
	asked    bool              // PostgreSQL's client asked for encryption
}

// maxOpen bounds the requests of a connection that wait for an answer.
const maxOpen = 1 << 16

func newFramer(p Protocol, way Direction, t *talk) framer {
	switch {
	case p == Kafka && way == ToServer:
		return (*kafkaRequests)(t)
	case p == Kafka:
		return (*kafkaResponses)(t)
	case p == Postgres && way == ToServer:
		return &postgresClient{talk: t}
	case p == Postgres:
		return (*postgresServer)(t)
	default:
		return nil
	}
}

// kafkaRequests begin with their size, key, version and correlation number.
type kafkaRequests talk

func (t *kafkaRequests) frame(b []byte) (m Message, size int64, known, opaque bool) {
	if len(b) < 12 {
		return m, 0, false, false
	}
	size = 4 + int64(binary.BigEndian.Uint32(b))
	m.Key, m.Version = int16(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:]))
	m.Correlation = int32(binary.BigEndian.Uint32(b[8:]))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.requests) < maxOpen {
		t.requests[m.Correlation] = m
	}
	return m, size, true, size < 12
}

// kafkaResponses begin with their size and correlation number.
type kafkaResponses talk

func (t *kafkaResponses) frame(b []byte) (m Message, size int64, known, opaque bool) {
	if len(b) < 8 {
		return m, 0, false, false
	}
	size = 4 + int64(binary.BigEndian.Uint32(b))
	correlation := int32(binary.BigEndian.Uint32(b[4:]))
	t.mu.Lock()
	defer t.mu.Unlock()
	request, ok := t.requests[correlation]
	if !ok {
		request.Key = -1
	}
	delete(t.requests, correlation)
	return Message{Key: request.Key, Version: request.Version, Correlation: correlation}, size, true, size < 8
}

// What PostgreSQL's clients may begin with instead of a start-up message.
const (
	sslRequest    = 80877103
	gssEncRequest = 80877104
	cancelRequest = 80877102
)

// postgresClient begins with messages without a type, until the start-up.
type postgresClient struct {
	talk    *talk
	started bool
}

func (c *postgresClient) frame(b []byte) (m Message, size int64, known, opaque bool) {
	if c.started {
		return typed(b)
	}
	if len(b) < 8 {
		return m, 0, false, false
	}
	size = int64(binary.BigEndian.Uint32(b))
	switch binary.BigEndian.Uint32(b[4:]) {
	case sslRequest, gssEncRequest:
		c.talk.mu.Lock()
		c.talk.asked = true
		c.talk.mu.Unlock()
	case cancelRequest:
	default:
		if b[4] != 0 || b[5] != 3 { // such as TLS, which the server agreed to
			return m, 0, true, true
		}
		c.started = true
	}
	return m, size, true, size < 8
}

// postgresServer answers a request for encryption by one byte.
type postgresServer talk

func (t *postgresServer) frame(b []byte) (m Message, size int64, known, opaque bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked && len(b) > 0 {
		t.asked = false
		switch b[0] {
		case 'S', 'G': // it is encrypted from here on
			return m, 0, true, true
		case 'N':
			return Message{Type: 'N'}, 1, true, false
		}
	}
	return typed(b)
}

// typed reads the type and the size, which doesn't count the type.
func typed(b []byte) (m Message, size int64, known, opaque bool) {
	if len(b) < 5 {
		return m, 0, false, false
	}
	size = 1 + int64(binary.BigEndian.Uint32(b[1:]))
	return Message{Type: b[0]}, size, true, size < 5
}
