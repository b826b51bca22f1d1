package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/connector"
)

// The wire form, contract version 1, holds all that Kafka gets of a record:
//
//	byte     1, the form's version
//	byte     flags: 1 there is a key, 2 there is a value, 4 a partition, 8 a time,
//	         16 headers
//	uvarint  the partition, if there is one; else the key's hash decides, and
//	         records without a key are spread
//	varint   the time in milliseconds since 1970 UTC, if there is one; else it is
//	         that of the delivery
//	uvarint  the number of headers, if there are any; each is its name and then its
//	         value, as text is: a uvarint of the length, and the bytes. A value's
//	         length is one more than it is, and 0 if there is none
//	uvarint  the key's length, if there is a key, and its bytes
//	bytes    the value, up to the end, if there is one
//
// A value that isn't there is a tombstone.
const wireVersion = 1

const (
	hasKey = 1 << iota
	hasValue
	hasPartition
	hasTime
	hasHeaders
	allFlags = 1<<iota - 1
)

// wireRecord is a record in its wire form. Its bytes are the form's.
type wireRecord struct {
	key, value []byte // nil: there is none
	partition  int32  // -1: by the key
	time       int64  // milliseconds, or connector.NoTime
	headers    []connector.Header
}

// appendHead appends everything but the value, which is to be appended next, as it
// is, if tombstone is false.
func (r *wireRecord) appendHead(dst []byte, tombstone bool) []byte {
	at := len(dst) + 1
	dst = append(dst, wireVersion, 0)
	if !tombstone {
		dst[at] |= hasValue
	}
	if r.partition >= 0 {
		dst[at] |= hasPartition
		dst = binary.AppendUvarint(dst, uint64(r.partition))
	}
	if r.time != connector.NoTime {
		dst[at] |= hasTime
		dst = binary.AppendVarint(dst, r.time)
	}
	if len(r.headers) > 0 {
		dst[at] |= hasHeaders
		dst = binary.AppendUvarint(dst, uint64(len(r.headers)))
		for _, h := range r.headers {
			dst = binary.AppendUvarint(dst, uint64(len(h.Key)))
			dst = append(dst, h.Key...)
			if h.Value == nil {
				dst = append(dst, 0)
				continue
			}
			dst = binary.AppendUvarint(dst, uint64(len(h.Value))+1)
			dst = append(dst, h.Value...)
		}
	}
	if r.key != nil {
		dst[at] |= hasKey
		dst = binary.AppendUvarint(dst, uint64(len(r.key)))
		dst = append(dst, r.key...)
	}
	return dst
}

// errNoWire says that a row was frozen by something else.
var errNoWire = errors.New("a row has no record of Kafka beside it: it was frozen for another connector")

// parseWire reads a wire form. The headers are kept in the given memory.
func parseWire(b []byte, headers []connector.Header) (wireRecord, error) {
	r := wireRecord{partition: -1, time: connector.NoTime}
	if len(b) == 0 {
		return r, errNoWire
	}
	if b[0] != wireVersion {
		return r, fmt.Errorf("a row's record of Kafka has form %d, this build reads form %d: deliver it with a newer build", b[0], wireVersion)
	}
	if len(b) < 2 || b[1]&^allFlags != 0 {
		return r, errDamagedWire
	}
	in, flags := wireReader{rest: b[2:]}, b[1]
	if flags&hasPartition != 0 {
		p := in.uvarint()
		if p > 1<<31-1 {
			return r, errDamagedWire
		}
		r.partition = int32(p)
	}
	if flags&hasTime != 0 {
		r.time = in.varint()
	}
	if flags&hasHeaders != 0 {
		r.headers = in.headers(headers)
	}
	if flags&hasKey != 0 {
		r.key = in.bytes(in.uvarint())
	}
	if flags&hasValue != 0 {
		r.value = in.bytes(uint64(len(in.rest)))
	}
	if in.damaged || len(in.rest) > 0 {
		return r, errDamagedWire
	}
	return r, nil
}

var errDamagedWire = errors.New("a row's record of Kafka is damaged")

// wireReader takes apart what is left of a form.
type wireReader struct {
	rest    []byte
	damaged bool
}

func (r *wireReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *wireReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *wireReader) skip(n int) {
	if n <= 0 {
		r.damaged, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

// bytes are the next n, never nil.
func (r *wireReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.damaged, r.rest = true, nil
	}
	if r.damaged {
		return []byte{}
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	if b == nil {
		b = []byte{}
	}
	return b
}

func (r *wireReader) headers(into []connector.Header) []connector.Header {
	into = into[:0]
	for n := r.uvarint(); n > 0 && !r.damaged; n-- {
		h := connector.Header{Key: string(r.bytes(r.uvarint()))}
		if size := r.uvarint(); size > 0 {
			h.Value = r.bytes(size - 1)
		}
		into = append(into, h)
	}
	return into
}
