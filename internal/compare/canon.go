package compare

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sluicestream/sluice/internal/twos"
	"github.com/sluicestream/sluice/schema"
)

// canon appends the canonical form of the value that in is at.
type canon func(dst []byte, in *scan) []byte

// canonizer compiles the canonical forms of an old and a new schema together: what
// only one side has (a nested record's field) is left out of both.
type canonizer struct {
	records map[[2]*schema.Schema]*[2]recordCanon
	// unordered sorts the items of arrays.
	unordered bool
}

func newCanonizer(unordered bool) *canonizer {
	return &canonizer{records: map[[2]*schema.Schema]*[2]recordCanon{}, unordered: unordered}
}

// canons are a form for each side.
type canons [2]canon

// compile compiles any two schemas.
func (c *canonizer) compile(old, now *schema.Schema) canons {
	alternatives := [2][]*schema.Schema{alternativesOf(old), alternativesOf(now)}
	if len(alternatives[oldSide]) == 1 && len(alternatives[newSide]) == 1 {
		both := c.plain(alternatives[oldSide][0], alternatives[newSide][0])
		return canons{nullable(old, both[oldSide]), nullable(now, both[newSide])}
	}
	return c.unions(old, now)
}

// alternativesOf are the schemas that a value can have which isn't null; null if it is
// nothing else.
func alternativesOf(s *schema.Schema) (all []*schema.Schema) {
	if s.Kind() != schema.KindUnion {
		return []*schema.Schema{s}
	}
	for _, b := range s.Branches() {
		if b.Kind() != schema.KindNull {
			all = append(all, b)
		}
	}
	if all == nil {
		all = s.Branches()[:1]
	}
	return all
}

// nullable wraps the form of the only alternative of s.
func nullable(s *schema.Schema, value canon) canon {
	branches := s.Branches()
	if s.Kind() != schema.KindUnion {
		return value
	}
	null := slices.IndexFunc(branches, func(b *schema.Schema) bool { return b.Kind() == schema.KindNull })
	n := len(branches)
	return func(dst []byte, in *scan) []byte {
		if in.index(n) == null {
			return append(dst, markNull)
		}
		return value(dst, in)
	}
}

// unions compiles schemas of which at least one has several alternatives: each of one
// side is paired with the one of the other side that its values can be equal to.
func (c *canonizer) unions(old, now *schema.Schema) (both canons) {
	sides := [2]*schema.Schema{old, now}
	var forms [2][]canon
	var left [2][]int // the alternatives that have no partner yet
	for side, s := range sides {
		n := len(branchesOf(s))
		forms[side] = make([]canon, n)
		for i := range n {
			left[side] = append(left[side], i)
		}
	}
	id := uint64(0)
	for _, i := range left[oldSide] {
		a := branchesOf(old)[i]
		at := partner(a, branchesOf(now), left[newSide])
		if at < 0 {
			forms[oldSide][i] = branch(id, a, c.plain(a, a)[oldSide])
		} else {
			j := left[newSide][at]
			b := branchesOf(now)[j]
			two := c.plain(a, b)
			forms[oldSide][i], forms[newSide][j] = branch(id, a, two[oldSide]), branch(id, b, two[newSide])
			left[newSide] = slices.Delete(left[newSide], at, at+1)
		}
		id++
	}
	for _, j := range left[newSide] {
		b := branchesOf(now)[j]
		forms[newSide][j] = branch(id, b, c.plain(b, b)[newSide])
		id++
	}
	for side, s := range sides {
		both[side] = dispatch(s, forms[side])
	}
	return both
}

func branchesOf(s *schema.Schema) []*schema.Schema {
	if s.Kind() == schema.KindUnion {
		return s.Branches()
	}
	return []*schema.Schema{s}
}

// partner finds the alternative of the other side: the one of the same class and name,
// else the first of the same class.
func partner(s *schema.Schema, others []*schema.Schema, left []int) int {
	for _, named := range []bool{true, false} {
		at := slices.IndexFunc(left, func(j int) bool {
			return classOf(others[j]) == classOf(s) && (!named || others[j].Name() == s.Name())
		})
		if at >= 0 {
			return at
		}
	}
	return -1
}

// branch marks a union's records, arrays and maps, which look alike if their types
// have different names alone.
func branch(id uint64, s *schema.Schema, value canon) canon {
	if classOf(s).scalar() {
		return value
	}
	return func(dst []byte, in *scan) []byte {
		return value(binary.AppendUvarint(append(dst, markBranch), id), in)
	}
}

func dispatch(s *schema.Schema, forms []canon) canon {
	if s.Kind() != schema.KindUnion {
		return forms[0]
	}
	return func(dst []byte, in *scan) []byte { return forms[in.index(len(forms))](dst, in) }
}

// plain compiles two schemas that are no unions.
func (c *canonizer) plain(old, now *schema.Schema) canons {
	a, b := classOf(old), classOf(now)
	switch {
	case a == b && a == record:
		return c.record(old, now)
	case a == b && a == list:
		return c.list(old, now)
	case a == b && a == dictionary:
		return c.dictionary(old, now)
	case a == b:
		narrow := old.Kind() == schema.KindFloat || now.Kind() == schema.KindFloat
		return canons{scalar(old, narrow), scalar(now, narrow)}
	case a.scalar() && b.scalar() && (a == text || b == text) && a != nothing && b != nothing:
		return canons{asText(old), asText(now)}
	case a.scalar() && b.scalar():
		return canons{scalar(old, false), scalar(now, false)}
	}
	return canons{c.alone(old), c.alone(now)} // nothing of one is equal to anything of the other
}

// alone compiles a schema that has no partner.
func (c *canonizer) alone(s *schema.Schema) canon {
	if classOf(s).scalar() {
		return scalar(s, false)
	}
	return c.plain(s, s)[oldSide]
}

// scalar compiles what holds no other values. narrow takes doubles as floats, since the
// other side has no more digits.
func scalar(s *schema.Schema, narrow bool) canon {
	switch s.Kind() {
	case schema.KindNull:
		return func(dst []byte, _ *scan) []byte { return append(dst, markNull) }
	case schema.KindBoolean:
		return func(dst []byte, in *scan) []byte {
			if b := in.take(1); len(b) == 1 && b[0] == 1 {
				return append(dst, markTrue)
			}
			return append(dst, markFalse)
		}
	case schema.KindInt, schema.KindLong:
		return integer(s)
	case schema.KindFloat:
		return func(dst []byte, in *scan) []byte {
			if b := in.take(4); b != nil {
				dst = appendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
			}
			return dst
		}
	case schema.KindDouble:
		return func(dst []byte, in *scan) []byte {
			b := in.take(8)
			if b == nil {
				return dst
			}
			v := math.Float64frombits(binary.LittleEndian.Uint64(b))
			if narrow {
				return appendFloat(dst, float64(float32(v)), 32)
			}
			return appendFloat(dst, v, 64)
		}
	case schema.KindEnum:
		symbols := s.Symbols()
		return func(dst []byte, in *scan) []byte {
			return appendText(dst, markText, []byte(symbols[in.index(len(symbols))]))
		}
	case schema.KindString:
		return func(dst []byte, in *scan) []byte { return appendText(dst, markText, in.bytes()) }
	}
	return ofBytes(s)
}

func integer(s *schema.Schema) canon {
	u, ok := units[s.Logical()]
	switch {
	case !ok:
		return func(dst []byte, in *scan) []byte { return appendInteger(dst, in.long()) }
	case u.class == moment:
		return func(dst []byte, in *scan) []byte { return appendMoment(dst, in.long(), u.unit) }
	}
	return func(dst []byte, in *scan) []byte { return appendDuration(dst, in.long(), u.unit) }
}

// ofBytes compiles bytes and fixed.
func ofBytes(s *schema.Schema) canon {
	read := (*scan).bytes
	if s.Kind() == schema.KindFixed {
		size := s.Size()
		read = func(in *scan) []byte { return in.take(size) }
	}
	switch {
	case s.Logical() == schema.LogicalDecimal:
		scale := s.Scale()
		return func(dst []byte, in *scan) []byte { return appendDecimal(dst, twos.Int(read(in)), scale) }
	case classOf(s) == number: // an unsigned integer of 64 bits
		return func(dst []byte, in *scan) []byte {
			b := read(in)
			if b == nil {
				return dst
			}
			v := binary.BigEndian.Uint64(b)
			if v <= math.MaxInt64 {
				return appendInteger(dst, int64(v))
			}
			var room [20]byte
			return appendText(dst, markDigits, scientific(false, strconv.AppendUint(room[:0], v, 10), 0))
		}
	case isUUID(s):
		return func(dst []byte, in *scan) []byte {
			b := read(in)
			if b == nil {
				return dst
			}
			return appendText(dst, markText, fmt.Appendf(nil, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
		}
	}
	return func(dst []byte, in *scan) []byte { return appendText(dst, markRaw, read(in)) }
}

// asText compiles a scalar that is compared with a text: by what it looks like.
func asText(s *schema.Schema) canon {
	if c := classOf(s); c == text {
		return scalar(s, false)
	} else if c == raw {
		value := scalar(s, false)
		return func(dst []byte, in *scan) []byte {
			at := len(dst)
			dst = value(dst, in)
			if len(dst) > at {
				dst[at] = markText
			}
			return dst
		}
	}
	write := schema.Text(s)
	return func(dst []byte, in *scan) []byte {
		out, rest, err := write(nil, in.src[min(in.pos, len(in.src)):])
		if in.bad = in.bad || err != nil; in.bad {
			return dst
		}
		in.pos = len(in.src) - len(rest)
		return appendText(dst, markText, out)
	}
}

// recordCanon is the form of a record on one side: the fields in the order in which
// they stand there. rank is the place that a field has in the form; negative: none.
type recordCanon struct {
	fields []canon
	skips  []func(src []byte) (int, error)
	rank   []int
	shared int
	// inOrder tells that the fields that both have stand in the form's order.
	inOrder bool
}

func (c *canonizer) record(old, now *schema.Schema) canons {
	id := [2]*schema.Schema{old, now}
	forms := c.records[id]
	if forms == nil {
		forms = &[2]recordCanon{newRecordCanon(old), newRecordCanon(now)}
		c.records[id] = forms
		for n, pair := range sharedFields(old, now) {
			two := c.compile(old.Fields()[pair[oldSide]].Type, now.Fields()[pair[newSide]].Type)
			for side := range forms {
				forms[side].fields[pair[side]], forms[side].rank[pair[side]] = two[side], n
				forms[side].shared++
			}
		}
		for side := range forms {
			forms[side].inOrder = slices.IsSorted(slices.DeleteFunc(slices.Clone(forms[side].rank), func(n int) bool { return n < 0 }))
		}
	}
	return canons{forms[oldSide].append, forms[newSide].append}
}

func newRecordCanon(s *schema.Schema) recordCanon {
	fields := s.Fields()
	r := recordCanon{fields: make([]canon, len(fields)), rank: make([]int, len(fields))}
	for i, f := range fields {
		r.skips = append(r.skips, schema.Skipper(f.Type))
		r.rank[i] = -1
	}
	return r
}

// sharedFields pairs the fields that both records have, by name or by a new field's
// alias, in the new one's order.
func sharedFields(old, now *schema.Schema) (pairs [][2]int) {
	before, taken := old.Fields(), map[int]bool{}
	names := map[string]bool{}
	for _, f := range now.Fields() {
		names[f.Name] = true
	}
	for j, f := range now.Fields() {
		i := slices.IndexFunc(before, func(o schema.Field) bool { return o.Name == f.Name })
		if i < 0 {
			i = slices.IndexFunc(before, func(o schema.Field) bool { return !names[o.Name] && slices.Contains(f.Aliases, o.Name) })
		}
		if i >= 0 && !taken[i] {
			taken[i] = true
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

func (r *recordCanon) append(dst []byte, in *scan) []byte {
	if r.inOrder {
		for i, field := range r.fields {
			if field != nil {
				dst = field(dst, in)
			} else {
				r.skip(i, in)
			}
		}
		return dst
	}
	places := make([]int, r.shared)
	for i := range r.fields {
		if n := r.rank[i]; n >= 0 {
			places[n] = in.pos
		}
		r.skip(i, in)
	}
	end := in.pos
	for n, place := range places {
		i := slices.Index(r.rank, n)
		in.pos = place
		dst = r.fields[i](dst, in)
	}
	in.pos = end
	return dst
}

func (r *recordCanon) skip(i int, in *scan) {
	if in.bad {
		return
	}
	n, err := r.skips[i](in.src[in.pos:])
	if err != nil {
		in.bad = true
		return
	}
	in.pos += n
}

func (c *canonizer) list(old, now *schema.Schema) canons {
	items := c.compile(old.Element(), now.Element())
	if c.unordered {
		return canons{sorted(markItem, items[oldSide]), sorted(markItem, items[newSide])}
	}
	var both canons
	for side, item := range items {
		both[side] = func(dst []byte, in *scan) []byte {
			in.items(func() { dst = item(append(dst, markItem), in) })
			return append(dst, markEnd)
		}
	}
	return both
}

// dictionary compiles maps, also those that are arrays of keys and values.
func (c *canonizer) dictionary(old, now *schema.Schema) (both canons) {
	keys := [2]*schema.Schema{}
	values := [2]*schema.Schema{}
	for side, s := range [2]*schema.Schema{old, now} {
		keys[side], values[side] = entryOf(s)
	}
	key, value := c.compile(keys[oldSide], keys[newSide]), c.compile(values[oldSide], values[newSide])
	for side := range both {
		both[side] = sorted(markEntry, func(dst []byte, in *scan) []byte { return value[side](key[side](dst, in), in) })
	}
	return both
}

// entryOf returns what a map's keys and values are.
func entryOf(s *schema.Schema) (key, value *schema.Schema) {
	if s.Kind() == schema.KindMap {
		return schema.String(), s.Element()
	}
	fields := s.Element().Fields()
	return fields[0].Type, fields[1].Type
}

// sorted puts items in the order of their forms.
func sorted(mark byte, item canon) canon {
	return func(dst []byte, in *scan) []byte {
		var forms []byte
		var ends []int
		in.items(func() {
			forms = item(append(forms, mark), in)
			ends = append(ends, len(forms))
		})
		items, start := make([][]byte, len(ends)), 0
		for i, end := range ends {
			items[i], start = forms[start:end], end
		}
		slices.SortFunc(items, bytes.Compare)
		for _, i := range items {
			dst = append(dst, i...)
		}
		return append(dst, markEnd)
	}
}
