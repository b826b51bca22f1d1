package tabular

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/schema"
)

// convert appends what a value that src begins with becomes, and returns what
// stands behind the value.
type convert func(dst, src []byte, depth int) (out, rest []byte, err error)

// maxDepth bounds how deep values of a recursive type may be nested.
const maxDepth = 1000

// resolver compiles pairs of a writer's and a reader's schema to what carries
// values over, by Avro's rules. Unlike package schema it knows no Go types, and
// takes what may be null for what may not: a null is an error where it occurs.
type resolver struct {
	records map[[2]*schema.Schema]*resolvedRecord
	lacks   lacks
}

// resolvedRecord carries records over.
type resolvedRecord struct {
	steps  []recordStep
	sorted bool // the fields come in the order in which they were written
	open   bool
}

// recordStep is a field of the writer's, or a default.
type recordStep struct {
	name     string
	written  int // which of the writer's fields; -1: none
	convert  convert
	skip     func(src []byte) (int, error) // of a written field without a place
	standard []byte
}

var errShort = fmt.Errorf("the data ends in the middle of a value")

// resolve compiles one pair. The error says, by path, where the two don't fit.
func (c *resolver) resolve(w, r *schema.Schema) (convert, error) {
	if w.Kind() == schema.KindUnion {
		return c.fromUnion(w, r)
	}
	if r.Kind() == schema.KindUnion {
		return c.intoUnion(w, r)
	}
	if w.Kind() == schema.KindRecord && r.Kind() == schema.KindRecord {
		return c.record(w, r)
	}
	if w.Kind() == r.Kind() && (w.Kind() == schema.KindArray || w.Kind() == schema.KindMap) {
		return c.blocks(w, r)
	}
	if !scalar(w) || !scalar(r) {
		return nil, &misfit{"", r.Word(), w.Word()}
	}
	for _, d := range schema.Differences(w, r) {
		if !d.Resolves {
			return nil, &misfit{"", r.Word(), w.Word()}
		}
	}
	return scalarConvert(w, r), nil
}

func (c *resolver) fromUnion(w, r *schema.Schema) (convert, error) {
	branches := w.Branches()
	into := make([]convert, len(branches))
	var failed error
	fits := false
	for i, b := range branches {
		var err error
		if into[i], err = c.resolve(b, r); err != nil {
			if b.Kind() != schema.KindNull {
				failed = err
			}
			continue
		}
		fits = fits || b.Kind() != schema.KindNull || len(branches) == 1
	}
	if !fits && failed != nil {
		return nil, failed
	}
	return func(dst, src []byte, depth int) ([]byte, []byte, error) {
		i, rest, err := readIndex(src, len(into))
		if err != nil {
			return dst, nil, err
		}
		if into[i] == nil {
			return dst, nil, &misfit{"", r.Word(), branches[i].Word()}
		}
		return into[i](dst, rest, depth)
	}, nil
}

func (c *resolver) intoUnion(w, r *schema.Schema) (convert, error) {
	failed := error(&misfit{"", r.Word(), w.Word()})
	for i, b := range r.Branches() {
		into, err := c.resolve(w, b)
		if err != nil {
			if inner, nullable := r.NonNull(); nullable && inner == b {
				failed = err
			}
			continue
		}
		return func(dst, src []byte, depth int) ([]byte, []byte, error) {
			return into(binary.AppendVarint(dst, int64(i)), src, depth)
		}, nil
	}
	return nil, failed
}

func (c *resolver) record(w, r *schema.Schema) (convert, error) {
	pair := [2]*schema.Schema{w, r}
	rec := c.records[pair]
	if rec == nil {
		rec = &resolvedRecord{open: true}
		c.records[pair] = rec
		columns := make([]column, 0, len(r.Fields()))
		for _, f := range r.Fields() {
			columns = append(columns, fieldColumn(f))
		}
		written := w.Fields()
		from := match(written, columns)
		before := len(c.lacks.all)
		c.lacks.add(columns, from)
		missing, err := c.fill(rec, written, columns, from)
		if err == nil && len(missing) > 0 {
			err = &misfit{missing[0].name, missing[0].typ.Word(), "nothing"}
		}
		if err != nil {
			c.lacks.all = c.lacks.all[:before] // another branch of a union may fit
			return nil, err
		}
		rec.open = false
	}
	return rec.convert, nil
}

// fill compiles a record of columns; from tells for each which of the written
// fields it is read from, or -1. Those that are not written and have no default
// are returned.
func (c *resolver) fill(rec *resolvedRecord, written []schema.Field, columns []column, from []int) (missing []column, err error) {
	kept := slices.DeleteFunc(slices.Clone(from), func(i int) bool { return i < 0 })
	rec.sorted = slices.IsSorted(kept)
	next := 0
	for i, col := range columns {
		at := from[i]
		if at < 0 {
			standard, err := defaultOf(col)
			if err != nil {
				return nil, err
			}
			if standard == nil {
				missing = append(missing, col)
			}
			rec.steps = append(rec.steps, recordStep{name: col.name, written: -1, standard: standard})
			continue
		}
		if rec.sorted {
			for ; next < at; next++ {
				rec.steps = append(rec.steps, recordStep{name: written[next].Name, written: next, skip: schema.Skipper(written[next].Type)})
			}
			next = at + 1
		}
		var into convert
		err := c.lacks.at(col.name, func() (err error) {
			into, err = c.resolve(written[at].Type, col.typ)
			return err
		})
		if err != nil {
			return nil, within(col.name, err)
		}
		rec.steps = append(rec.steps, recordStep{name: col.name, written: at, convert: into})
	}
	for i := next; i < len(written); i++ {
		if rec.sorted || !slices.Contains(from, i) {
			rec.steps = append(rec.steps, recordStep{name: written[i].Name, written: i, skip: schema.Skipper(written[i].Type)})
		}
	}
	if !rec.sorted {
		for i := range rec.steps {
			if s := &rec.steps[i]; s.convert != nil {
				s.skip = schema.Skipper(written[s.written].Type)
			}
		}
	}
	return missing, nil
}

// match finds for each column the written field that it is read from, or -1: the
// one of its name, else of the first of its other names that is no column's.
func match(written []schema.Field, columns []column) []int {
	at := map[string]int{}
	for i, f := range written {
		at[f.Name] = i
	}
	from := make([]int, len(columns))
	taken := map[int]bool{}
	for i, c := range columns {
		from[i] = -1
		if w, ok := at[c.name]; ok {
			from[i], taken[w] = w, true
		}
	}
	for i, c := range columns {
		for _, other := range c.others {
			if w, ok := at[other]; ok && from[i] < 0 && !taken[w] {
				from[i], taken[w] = w, true
			}
		}
	}
	return from
}

func (rec *resolvedRecord) convert(dst, src []byte, depth int) ([]byte, []byte, error) {
	if depth > maxDepth {
		return dst, nil, &misfit{"", fmt.Sprintf("values nested at most %d deep", maxDepth), "more"}
	}
	if !rec.sorted {
		return rec.reorder(dst, src, depth)
	}
	var err error
	for i := range rec.steps {
		s := &rec.steps[i]
		switch {
		case s.convert != nil:
			if dst, src, err = s.convert(dst, src, depth+1); err != nil {
				return dst, nil, within(s.name, err)
			}
		case s.skip != nil:
			n, err := s.skip(src)
			if err != nil {
				return dst, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			src = src[n:]
		default:
			dst = append(dst, s.standard...)
		}
	}
	return dst, src, nil
}

// reorder carries a record over whose fields were written in another order: first
// it finds out where each begins.
func (rec *resolvedRecord) reorder(dst, src []byte, depth int) (_, _ []byte, err error) {
	starts := make([][]byte, len(rec.steps))
	order := make([]int, len(rec.steps)) // steps by the written field
	n := 0
	for i, s := range rec.steps {
		if s.written >= 0 {
			order[s.written] = i
			n++
		}
	}
	for _, i := range order[:n] {
		starts[i] = src
		size, err := rec.steps[i].skip(src)
		if err != nil {
			return dst, nil, fmt.Errorf("%s: %w", rec.steps[i].name, err)
		}
		src = src[size:]
	}
	for i := range rec.steps {
		s := &rec.steps[i]
		switch {
		case s.convert != nil:
			if dst, _, err = s.convert(dst, starts[i], depth+1); err != nil {
				return dst, nil, within(s.name, err)
			}
		case s.written < 0:
			dst = append(dst, s.standard...)
		}
	}
	return dst, src, nil
}

// blocks carries arrays and maps over.
func (c *resolver) blocks(w, r *schema.Schema) (convert, error) {
	path := "[]"
	if w.Kind() == schema.KindMap {
		path = "{}"
	}
	item, err := c.resolve(w.Element(), r.Element())
	if err != nil {
		return nil, within(path, err)
	}
	isMap := w.Kind() == schema.KindMap
	return func(dst, src []byte, depth int) ([]byte, []byte, error) {
		empty := 0
		for {
			count, n := binary.Varint(src)
			if n <= 0 || count == math.MinInt64 {
				return dst, nil, errShort
			}
			if src = src[n:]; count == 0 {
				return append(dst, 0), src, nil
			}
			if count < 0 { // then the size follows
				count = -count
				if _, n = binary.Varint(src); n <= 0 {
					return dst, nil, errShort
				}
				src = src[n:]
			}
			dst = binary.AppendVarint(dst, count)
			for range count {
				before := len(src)
				var err error
				if isMap {
					var key []byte
					if key, src, err = readText(src); err != nil {
						return dst, nil, err
					}
					dst = appendText(dst, key)
				}
				if dst, src, err = item(dst, src, depth+1); err != nil {
					return dst, nil, within(path, err)
				}
				if len(src) == before { // an item without bytes: nothing else bounds their number
					if empty++; empty > mostEmpty {
						return dst, nil, fmt.Errorf("more than %d items that take no bytes", mostEmpty)
					}
				}
			}
		}
	}, nil
}

// mostEmpty bounds the items of an array that take no bytes.
const mostEmpty = 1 << 10

// scalarConvert carries over what holds nothing else, between two schemas that
// resolve.
func scalarConvert(w, r *schema.Schema) convert {
	skip := schema.Skipper(w)
	same := func(dst, src []byte, _ int) ([]byte, []byte, error) {
		n, err := skip(src)
		if err != nil {
			return dst, nil, err
		}
		return append(dst, src[:n]...), src[n:], nil
	}
	switch from, to := w.Kind(), r.Kind(); {
	case (from == schema.KindInt || from == schema.KindLong) && (to == schema.KindFloat || to == schema.KindDouble):
		return func(dst, src []byte, _ int) ([]byte, []byte, error) {
			v, n := binary.Varint(src)
			if n <= 0 {
				return dst, nil, errShort
			}
			if to == schema.KindFloat {
				return appendFloat32(dst, float32(v)), src[n:], nil
			}
			return appendFloat64(dst, float64(v)), src[n:], nil
		}
	case from == schema.KindFloat && to == schema.KindDouble:
		return func(dst, src []byte, _ int) ([]byte, []byte, error) {
			if len(src) < 4 {
				return dst, nil, errShort
			}
			return appendFloat64(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(src)))), src[4:], nil
		}
	case to == schema.KindInt || to == schema.KindLong:
		return checkedInteger(w, r)
	case from == schema.KindEnum:
		return enumConvert(w.Symbols(), r.Symbols())
	}
	return same
}

// checkedInteger sees that a number fits what it becomes, whatever the writer's
// schema promised.
func checkedInteger(w, r *schema.Schema) convert {
	bits, signed := r.Integer()
	if bits == 0 {
		if bits, signed = 64, true; r.Kind() == schema.KindInt {
			bits = 32
		}
	}
	return func(dst, src []byte, _ int) ([]byte, []byte, error) {
		v, n := binary.Varint(src)
		if n <= 0 {
			return dst, nil, errShort
		}
		if !fitsInteger(v, bits, signed) {
			return dst, nil, &misfit{"", r.Word(), fmt.Sprint(v)}
		}
		return binary.AppendVarint(dst, v), src[n:], nil
	}
}

func fitsInteger(v int64, bits int, signed bool) bool {
	if signed {
		return v >= -1<<(bits-1) && v <= 1<<(bits-1)-1
	}
	return v >= 0 && (bits == 64 || v < 1<<bits)
}

func enumConvert(written, read []string) convert {
	to := make([]int, len(written))
	for i, symbol := range written {
		to[i] = slices.Index(read, symbol)
	}
	return func(dst, src []byte, _ int) ([]byte, []byte, error) {
		i, rest, err := readIndex(src, len(written))
		if err != nil {
			return dst, nil, err
		}
		if to[i] < 0 {
			return dst, nil, &misfit{"", "one of " + strings.Join(read, ", "), written[i]}
		}
		return binary.AppendVarint(dst, int64(to[i])), rest, nil
	}
}

// readIndex reads the index of a symbol or a branch, of which there are n.
func readIndex(src []byte, n int) (int, []byte, error) {
	i, size := binary.Varint(src)
	if size <= 0 {
		return 0, nil, errShort
	}
	if i < 0 || i >= int64(n) {
		return 0, nil, fmt.Errorf("an index from 0 to %d is expected, found %d", n-1, i)
	}
	return int(i), src[size:], nil
}

// readText reads a string or bytes.
func readText(src []byte) (text, rest []byte, err error) {
	n, size := binary.Varint(src)
	if size <= 0 {
		return nil, nil, errShort
	}
	if n < 0 || n > int64(len(src)-size) {
		return nil, nil, errShort
	}
	return src[size : size+int(n)], src[size+int(n):], nil
}
