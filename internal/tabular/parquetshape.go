package tabular

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicestream/sluice/schema"
)

// orderedGroup is a group whose fields stand in the order of a record's.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements [parquet.Node].
func (g orderedGroup) Fields() []parquet.Field { return g.fields }

func newGroup(names []string, nodes []parquet.Node) parquet.Node {
	g := orderedGroup{Group: parquet.Group{}}
	for i, name := range names {
		g.Group[name] = nodes[i]
	}
	byName := map[string]parquet.Field{}
	for _, f := range g.Group.Fields() {
		byName[f.Name()] = f
	}
	for _, name := range names {
		g.fields = append(g.fields, byName[name])
	}
	return g
}

// shape is how values of a schema lie in a Parquet file: a node, and what takes a
// value's encoding apart into the columns below the node.
type shape struct {
	node        parquet.Node
	first, last int // columns, the last one excluded
	write       shredFunc
}

// shredFunc adds the value that src begins with to the columns. repetition is the
// level of the first value in each.
type shredFunc func(s *shredder, src []byte, repetition int) (rest []byte, err error)

// shredder has a row's values by column.
type shredder struct{ columns [][]parquet.Value }

// nothing adds nulls to some columns.
func (s *shredder) nothing(first, last, repetition, definition int) {
	for i := first; i < last; i++ {
		s.columns[i] = append(s.columns[i], parquet.NullValue().Level(repetition, definition, i))
	}
}

// shaper compiles schemas to shapes.
type shaper struct {
	columns int
	open    map[*schema.Schema]bool // records around
}

// mostLevels bounds how deep lists and nulls may be nested as such; what is deeper
// becomes JSON.
const mostLevels = 60

// of compiles a schema whose values have the given levels.
func (p *shaper) of(s *schema.Schema, repetition, definition int) shape {
	switch {
	case definition > mostLevels || p.open[s]:
	case s.Kind() == schema.KindRecord && len(s.Fields()) > 0:
		return p.record(s, repetition, definition)
	case s.Kind() == schema.KindUnion:
		if inner, nullable := s.NonNull(); nullable && inner != s {
			return p.optional(s, inner, repetition, definition)
		}
	case s.Kind() == schema.KindArray && s.Logical() != schema.LogicalMap:
		return p.list(s, repetition, definition)
	case s.Kind() == schema.KindArray:
		fields := s.Element().Fields()
		return p.mapping(fields[0].Type, fields[1].Type, repetition, definition)
	case s.Kind() == schema.KindMap:
		return p.mapping(schema.String(), s.Element(), repetition, definition)
	case s.Kind() != schema.KindNull && scalar(s):
		node, value := leafOf(s)
		return p.leaf(node, definition, value)
	}
	return p.asJSON(s, definition)
}

// leafFunc reads the value that src begins with.
type leafFunc func(src []byte) (v parquet.Value, rest []byte, err error)

func (p *shaper) leaf(node parquet.Node, definition int, value leafFunc) shape {
	at := p.columns
	p.columns++
	return shape{node, at, at + 1, func(s *shredder, src []byte, repetition int) ([]byte, error) {
		v, rest, err := value(src)
		if err != nil {
			return nil, err
		}
		s.columns[at] = append(s.columns[at], v.Level(repetition, definition, at))
		return rest, nil
	}}
}

// asJSON is the shape of what Parquet has no type for.
func (p *shaper) asJSON(s *schema.Schema, definition int) shape {
	render := schema.JSON(s)
	return p.leaf(parquet.JSON(), definition, func(src []byte) (parquet.Value, []byte, error) {
		text, rest, err := render(nil, src)
		return parquet.ByteArrayValue(text), rest, err
	})
}

func (p *shaper) record(s *schema.Schema, repetition, definition int) shape {
	p.open[s] = true
	defer delete(p.open, s)
	out := shape{first: p.columns}
	var names []string
	var nodes []parquet.Node
	var writes []shredFunc
	for _, f := range s.Fields() {
		field := p.of(f.Type, repetition, definition)
		names, nodes, writes = append(names, f.Name), append(nodes, field.node), append(writes, field.write)
	}
	out.node, out.last = newGroup(names, nodes), p.columns
	out.write = func(s *shredder, src []byte, repetition int) (_ []byte, err error) {
		for _, write := range writes {
			if src, err = write(s, src, repetition); err != nil {
				return nil, err
			}
		}
		return src, nil
	}
	return out
}

func (p *shaper) optional(s, inner *schema.Schema, repetition, definition int) shape {
	out := p.of(inner, repetition, definition+1)
	null := 0
	if s.Branches()[1].Kind() == schema.KindNull {
		null = 1
	}
	write, first, last := out.write, out.first, out.last
	out.node = parquet.Optional(out.node)
	out.write = func(s *shredder, src []byte, repetition int) ([]byte, error) {
		branch, rest, err := readIndex(src, 2)
		if err != nil {
			return nil, err
		}
		if branch == null {
			s.nothing(first, last, repetition, definition)
			return rest, nil
		}
		return write(s, rest, repetition)
	}
	return out
}

func (p *shaper) list(s *schema.Schema, repetition, definition int) shape {
	out := p.of(s.Element(), repetition+1, definition+1)
	out.node = parquet.List(out.node)
	out.write = p.repeated(out, repetition, definition)
	return out
}

func (p *shaper) mapping(key, value *schema.Schema, repetition, definition int) shape {
	k := p.of(key, repetition+1, definition+1)
	v := p.of(value, repetition+1, definition+1)
	out := shape{node: parquet.Map(k.node, v.node), first: k.first, last: v.last}
	out.write = func(s *shredder, src []byte, repetition int) ([]byte, error) {
		src, err := k.write(s, src, repetition)
		if err != nil {
			return nil, err
		}
		return v.write(s, src, repetition)
	}
	out.write = p.repeated(out, repetition, definition)
	return out
}

// repeated writes the items of an array or a map, each by the shape's own write.
func (p *shaper) repeated(item shape, level, definition int) shredFunc {
	write, first, last := item.write, item.first, item.last
	return func(s *shredder, src []byte, repetition int) ([]byte, error) {
		items := 0
		for {
			count, n := binary.Varint(src)
			if n <= 0 || count == math.MinInt64 {
				return nil, errShort
			}
			if src = src[n:]; count == 0 {
				break
			}
			if count < 0 {
				count = -count
				if _, n = binary.Varint(src); n <= 0 {
					return nil, errShort
				}
				src = src[n:]
			}
			for range count {
				before := len(src)
				var err error
				if src, err = write(s, src, repetition); err != nil {
					return nil, err
				}
				repetition = level + 1
				if items++; len(src) == before && items > mostEmpty {
					return nil, errShort
				}
			}
		}
		if items == 0 {
			s.nothing(first, last, repetition, definition)
		}
		return src, nil
	}
}

// leafOf is the node of a scalar, and what reads its encoding.
func leafOf(s *schema.Schema) (parquet.Node, leafFunc) {
	switch s.Logical() {
	case schema.LogicalTimestamp:
		return parquet.Timestamp(parquet.Microsecond), longLeaf
	case logicalMillis:
		return parquet.Timestamp(parquet.Millisecond), longLeaf
	case logicalNanos:
		return parquet.Timestamp(parquet.Nanosecond), longLeaf
	case logicalDate:
		if s.Kind() == schema.KindInt {
			return parquet.Date(), intLeaf
		}
	case schema.LogicalDecimal:
		if s.Kind() == schema.KindFixed {
			return parquet.Decimal(s.Scale(), s.Precision(), parquet.FixedLenByteArrayType(s.Size())), fixedLeaf(s.Size())
		}
		return parquet.Decimal(s.Scale(), s.Precision(), parquet.ByteArrayType), bytesLeaf
	case schema.LogicalUint64:
		return parquet.Uint(64), func(src []byte) (parquet.Value, []byte, error) {
			if len(src) < 8 {
				return parquet.Value{}, nil, errShort
			}
			return parquet.Int64Value(int64(binary.BigEndian.Uint64(src))), src[8:], nil
		}
	case logicalUUID:
		if s.Kind() == schema.KindFixed && s.Size() == 16 {
			return parquet.UUID(), fixedLeaf(16)
		}
	}
	switch s.Kind() {
	case schema.KindBoolean:
		return parquet.Leaf(parquet.BooleanType), func(src []byte) (parquet.Value, []byte, error) {
			if len(src) == 0 {
				return parquet.Value{}, nil, errShort
			}
			return parquet.BooleanValue(src[0] != 0), src[1:], nil
		}
	case schema.KindInt, schema.KindLong:
		return integerLeaf(s)
	case schema.KindFloat:
		return parquet.Leaf(parquet.FloatType), func(src []byte) (parquet.Value, []byte, error) {
			if len(src) < 4 {
				return parquet.Value{}, nil, errShort
			}
			return parquet.FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(src))), src[4:], nil
		}
	case schema.KindDouble:
		return parquet.Leaf(parquet.DoubleType), func(src []byte) (parquet.Value, []byte, error) {
			if len(src) < 8 {
				return parquet.Value{}, nil, errShort
			}
			return parquet.DoubleValue(math.Float64frombits(binary.LittleEndian.Uint64(src))), src[8:], nil
		}
	case schema.KindString:
		return parquet.String(), bytesLeaf
	case schema.KindEnum:
		symbols := make([][]byte, len(s.Symbols()))
		for i, symbol := range s.Symbols() {
			symbols[i] = []byte(symbol)
		}
		return parquet.String(), func(src []byte) (parquet.Value, []byte, error) {
			i, rest, err := readIndex(src, len(symbols))
			if err != nil {
				return parquet.Value{}, nil, err
			}
			return parquet.ByteArrayValue(symbols[i]), rest, nil
		}
	case schema.KindFixed:
		return parquet.Leaf(parquet.FixedLenByteArrayType(s.Size())), fixedLeaf(s.Size())
	}
	return parquet.Leaf(parquet.ByteArrayType), bytesLeaf
}

func integerLeaf(s *schema.Schema) (parquet.Node, leafFunc) {
	bits, signed := s.Integer()
	value := longLeaf
	if bits != 0 && bits <= 32 {
		value = intLeaf
	}
	switch {
	case bits == 0 && s.Kind() == schema.KindInt: // a logical type that Parquet lacks
		return parquet.Int(32), intLeaf
	case bits == 0:
		return parquet.Int(64), longLeaf
	case signed:
		return parquet.Int(bits), value
	}
	return parquet.Uint(bits), value
}

func longLeaf(src []byte) (parquet.Value, []byte, error) {
	v, n := binary.Varint(src)
	if n <= 0 {
		return parquet.Value{}, nil, errShort
	}
	return parquet.Int64Value(v), src[n:], nil
}

func intLeaf(src []byte) (parquet.Value, []byte, error) {
	v, n := binary.Varint(src)
	if n <= 0 {
		return parquet.Value{}, nil, errShort
	}
	return parquet.Int32Value(int32(v)), src[n:], nil
}

func bytesLeaf(src []byte) (parquet.Value, []byte, error) {
	text, rest, err := readText(src)
	return parquet.ByteArrayValue(text), rest, err
}

func fixedLeaf(size int) leafFunc {
	return func(src []byte) (parquet.Value, []byte, error) {
		if len(src) < size {
			return parquet.Value{}, nil, errShort
		}
		return parquet.FixedLenByteArrayValue(src[:size]), src[size:], nil
	}
}
