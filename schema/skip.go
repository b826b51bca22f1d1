package schema

// Skipper returns a function that tells how many bytes the value takes that src
// begins with. What is no value of s is an error; values that are nested more
// than 2,000 deep are too.
func Skipper(s *Schema) func(src []byte) (n int, err error) {
	skip := newSkipCompiler().root(s)
	return func(src []byte) (int, error) { return skip(src, 0, 0) }
}

// skipFunc returns the position behind the value at pos.
type skipFunc func(src []byte, pos, depth int) (int, error)

// skipOp passes over one thing: records are flattened.
type skipOp struct {
	code skipCode
	size int // of skipFixed; the number of symbols of skipIndex
	call skipFunc
}

type skipCode uint8

const (
	skipLong skipCode = iota
	skipLength
	skipFixed
	skipBoolean
	skipIndex
	skipCall
)

type skipper struct{ ops []skipOp }

func (k *skipper) run(src []byte, pos, depth int) (_ int, err error) {
	for i := range k.ops {
		op := &k.ops[i]
		switch op.code {
		case skipLong:
			if _, pos = readUvarint(src, pos); pos < 0 {
				return 0, varintError(pos)
			}
		case skipLength:
			n, start, err := readLength(src, pos)
			if err != nil {
				return 0, err
			}
			pos = start + n
		case skipFixed:
			if len(src)-pos < op.size {
				return 0, errShort
			}
			pos += op.size
		case skipBoolean:
			if pos >= len(src) {
				return 0, errShort
			}
			if src[pos] > 1 {
				return 0, errBoolean
			}
			pos++
		case skipIndex:
			if _, pos, err = readIndex(src, pos, op.size, errSymbol); err != nil {
				return 0, err
			}
		case skipCall:
			if pos, err = op.call(src, pos, depth); err != nil {
				return 0, err
			}
		}
	}
	return pos, nil
}

// skipCompiler compiles schemas to skippers. Records are flattened, but for
// those that stand in themselves.
type skipCompiler struct {
	records map[*Schema]*skipper
	heads   heads
	least   leastSizes
}

func newSkipCompiler() *skipCompiler {
	return &skipCompiler{records: map[*Schema]*skipper{}, heads: heads{}, least: leastSizes{}}
}

// root returns what passes over a value of s.
func (c *skipCompiler) root(s *Schema) skipFunc {
	c.heads.find(s)
	return c.value(s)
}

func (c *skipCompiler) value(s *Schema) skipFunc {
	k := &skipper{}
	c.flatten(k, s)
	return k.run
}

// nested passes over a recursive record, and bounds how deep it goes.
func (c *skipCompiler) nested(s *Schema) skipFunc {
	k := c.records[s]
	if k == nil {
		k = &skipper{}
		c.records[s] = k
		c.fields(k, s)
	}
	return func(src []byte, pos, depth int) (int, error) {
		if depth >= maxWalk {
			return 0, errDeep
		}
		return k.run(src, pos, depth+1)
	}
}

func (c *skipCompiler) fields(k *skipper, s *Schema) {
	for i := range s.fields {
		c.flatten(k, s.fields[i].Type)
	}
}

func (c *skipCompiler) flatten(k *skipper, s *Schema) {
	op := skipOp{code: skipCall}
	switch s.kind {
	case KindNull:
		return
	case KindBoolean:
		op.code = skipBoolean
	case KindInt, KindLong:
		op.code = skipLong
	case KindFloat:
		op.code, op.size = skipFixed, 4
	case KindDouble:
		op.code, op.size = skipFixed, 8
	case KindFixed:
		op.code, op.size = skipFixed, s.size
	case KindBytes, KindString:
		op.code = skipLength
	case KindEnum:
		op.code, op.size = skipIndex, len(s.symbols)
	case KindRecord:
		if !c.heads[s] {
			c.fields(k, s)
			return
		}
		op.call = c.nested(s)
	case KindUnion:
		op.call = c.union(s)
	case KindArray:
		op.call = c.blocks(c.value(s.element), c.least.of(s.element))
	case KindMap:
		entry := &skipper{ops: []skipOp{{code: skipLength}}}
		c.flatten(entry, s.element)
		op.call = c.blocks(entry.run, 1+c.least.of(s.element))
	}
	k.ops = append(k.ops, op)
}

func (c *skipCompiler) union(s *Schema) skipFunc {
	branches := make([]skipFunc, len(s.branches))
	for i, b := range s.branches {
		branches[i] = c.value(b)
	}
	return func(src []byte, pos, depth int) (int, error) {
		i, pos, err := readIndex(src, pos, len(branches), errBranch)
		if err != nil {
			return 0, err
		}
		return branches[i](src, pos, depth)
	}
}

// blocks passes over an array or a map. The size that a block tells is not
// relied on: what it holds has to be valid.
func (c *skipCompiler) blocks(item skipFunc, least int) skipFunc {
	return func(src []byte, pos, depth int) (int, error) {
		for {
			count, _, start, err := readBlock(src, pos, least)
			if err != nil || count == 0 {
				return start, err
			}
			pos = start
			if least == 0 {
				continue
			}
			for range count {
				if pos, err = item(src, pos, depth); err != nil {
					return 0, err
				}
			}
		}
	}
}
