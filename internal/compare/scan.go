package compare

import "encoding/binary"

// scan reads Avro's encoding. Once something can't be read it is bad, and gives zeros.
type scan struct {
	src []byte
	pos int
	bad bool
}

// take returns the next n bytes.
func (s *scan) take(n int) []byte {
	if s.bad || n < 0 || n > len(s.src)-s.pos {
		s.bad = true
		return nil
	}
	s.pos += n
	return s.src[s.pos-n : s.pos]
}

func (s *scan) long() int64 {
	if s.bad {
		return 0
	}
	v, n := binary.Varint(s.src[s.pos:])
	if n <= 0 {
		s.bad = true
		return 0
	}
	s.pos += n
	return v
}

// bytes returns what stands behind its length.
func (s *scan) bytes() []byte {
	n := s.long()
	if n > int64(len(s.src)) {
		s.bad = true
	}
	return s.take(int(n))
}

// index reads the number of one of n things.
func (s *scan) index(n int) int {
	i := s.long()
	if i < 0 || i >= int64(n) {
		s.bad = true
		return 0
	}
	return int(i)
}

// items calls item for each item of an array or a map.
func (s *scan) items(item func()) {
	for !s.bad {
		n := s.long()
		if n < 0 {
			n = -n
			s.long() // the block's bytes
		}
		if n <= 0 {
			return
		}
		for ; n > 0 && !s.bad; n-- {
			item()
		}
	}
}
