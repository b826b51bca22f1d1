package tabular

import (
	"encoding/binary"
	"fmt"

	"github.com/sluicestream/sluice/schema"
)

// jsonFunc appends the encoding of the value at a place of a tape.
type jsonFunc func(dst []byte, t *tape, at int32) ([]byte, error)

// jsonCompiler compiles schemas to what reads JSON in the form of schema.JSON.
type jsonCompiler struct {
	ignore  bool // members that are no fields
	records map[*schema.Schema]*jsonRecord
}

func newJSONCompiler(ignore bool) *jsonCompiler {
	return &jsonCompiler{ignore: ignore, records: map[*schema.Schema]*jsonRecord{}}
}

// jsonRecord reads objects as records.
type jsonRecord struct {
	columns []column
	index   map[string]int
	fields  []jsonFunc
	absent  [][]byte // what a missing member's field is; nil: an error
	met     bool     // a row has had one
	seen    []bool   // which fields a row has had
	ignore  bool
}

func (c *jsonCompiler) value(s *schema.Schema) (jsonFunc, error) {
	switch s.Kind() {
	case schema.KindRecord:
		return c.record(s)
	case schema.KindUnion:
		return c.union(s)
	case schema.KindArray:
		if s.Logical() == schema.LogicalMap {
			return c.entries(s)
		}
		return c.array(s)
	case schema.KindMap:
		value, err := c.value(s.Element())
		return object(func(dst []byte, name []byte) ([]byte, error) { return appendText(dst, name), nil }, value), err
	}
	return jsonScalar(s), nil
}

func (c *jsonCompiler) record(s *schema.Schema) (jsonFunc, error) {
	r := c.records[s]
	if r == nil {
		r = &jsonRecord{}
		c.records[s] = r
		columns := make([]column, 0, len(s.Fields()))
		for _, f := range s.Fields() {
			columns = append(columns, fieldColumn(f))
		}
		if err := c.fill(r, columns); err != nil {
			return nil, err
		}
	}
	return r.append, nil
}

// fill compiles a record of columns.
func (c *jsonCompiler) fill(r *jsonRecord, columns []column) error {
	r.columns, r.ignore, r.index = columns, c.ignore, map[string]int{}
	for i, f := range columns {
		read, err := c.value(f.typ)
		if err != nil {
			return err
		}
		absent, err := defaultOf(f)
		if err != nil {
			return err
		}
		r.fields, r.absent, r.seen = append(r.fields, read), append(r.absent, absent), append(r.seen, false)
		r.index[f.name] = i
	}
	for i, f := range columns {
		for _, name := range f.others {
			if _, ok := r.index[name]; !ok {
				r.index[name] = i
			}
		}
	}
	return nil
}

// unseen are the fields that no row has had, of records among them the fields that
// none of these has had. None is before the first row.
func (r *jsonRecord) unseen(records map[*schema.Schema]*jsonRecord, told map[*jsonRecord]bool, prefix string) (all []Absent) {
	if told[r] || !r.met {
		return nil
	}
	told[r] = true
	for i, c := range r.columns {
		if !r.seen[i] {
			all = append(all, absentOf(c, prefix))
		} else if part := records[recordIn(c.typ)]; part != nil {
			all = append(all, part.unseen(records, told, prefix+c.name+".")...)
		}
	}
	return all
}

// recordIn is the record that a type has in it: itself, or what an optional one, a
// list or a map is of.
func recordIn(s *schema.Schema) *schema.Schema {
	for {
		switch inner, _ := s.NonNull(); {
		case s.Kind() == schema.KindUnion && inner != nil && inner != s:
			s = inner
		case s.Kind() == schema.KindArray && s.Logical() != schema.LogicalMap, s.Kind() == schema.KindMap:
			s = s.Element()
		default:
			return s
		}
	}
}

// append reads an object.
func (r *jsonRecord) append(dst []byte, t *tape, at int32) ([]byte, error) {
	object := t.parts[at]
	if object.kind != '{' {
		return dst, &misfit{"", "an object", t.show(object)}
	}
	r.met = true
	base := len(t.places)
	defer func() { t.places = t.places[:base] }()
	for range r.columns {
		t.places = append(t.places, -1)
	}
	for name := at + 1; name < object.next; name = t.parts[name+1].next {
		text := t.text(t.parts[name])
		i, ok := r.index[string(text)]
		switch {
		case ok && t.places[base+i] >= 0:
			return dst, &misfit{r.columns[i].name, "one value", "another under the name " + shown(text)}
		case ok:
			t.places[base+i] = name + 1
		case !r.ignore:
			return dst, &misfit{string(text[:min(len(text), shownBytes)]), "no such field", t.show(t.parts[name+1])}
		}
	}
	var err error
	for i, read := range r.fields {
		place := t.places[base+i]
		switch {
		case place >= 0:
			r.seen[i] = true
			if dst, err = read(dst, t, place); err != nil {
				return dst, within(r.columns[i].name, err)
			}
		case r.absent[i] == nil:
			return dst, &misfit{r.columns[i].name, r.columns[i].typ.Word(), "nothing"}
		default:
			dst = append(dst, r.absent[i]...)
		}
	}
	return dst, nil
}

func (c *jsonCompiler) union(s *schema.Schema) (jsonFunc, error) {
	branches := s.Branches()
	reads := make([]jsonFunc, len(branches))
	null := -1
	for i, b := range branches {
		var err error
		if reads[i], err = c.value(b); err != nil {
			return nil, err
		}
		if b.Kind() == schema.KindNull {
			null = i
		}
	}
	return func(dst []byte, t *tape, at int32) ([]byte, error) {
		if t.parts[at].kind == 'n' && null >= 0 {
			return binary.AppendVarint(dst, int64(null)), nil
		}
		first := error(&misfit{"", s.Word(), t.show(t.parts[at])})
		for i, read := range reads {
			if i == null {
				continue
			}
			out, err := read(binary.AppendVarint(dst, int64(i)), t, at)
			if err == nil {
				return out, nil
			}
			if len(branches) == 2 && null >= 0 {
				first = err
			}
		}
		return dst, first
	}, nil
}

func (c *jsonCompiler) array(s *schema.Schema) (jsonFunc, error) {
	item, err := c.value(s.Element())
	if err != nil {
		return nil, err
	}
	return func(dst []byte, t *tape, at int32) ([]byte, error) {
		list := t.parts[at]
		if list.kind != '[' {
			return dst, &misfit{"", "an array", t.show(list)}
		}
		n := int64(0)
		for i := at + 1; i < list.next; i = t.parts[i].next {
			n++
		}
		if n == 0 {
			return append(dst, 0), nil
		}
		dst = binary.AppendVarint(dst, n)
		for i, k := at+1, 0; i < list.next; i, k = t.parts[i].next, k+1 {
			var err error
			if dst, err = item(dst, t, i); err != nil {
				return dst, within(fmt.Sprintf("[%d]", k), err)
			}
		}
		return append(dst, 0), nil
	}, nil
}

// entries reads a map whose keys aren't strings: an object, or an array of keys and
// values.
func (c *jsonCompiler) entries(s *schema.Schema) (jsonFunc, error) {
	list, err := c.array(s)
	if err != nil {
		return nil, err
	}
	fields := s.Element().Fields()
	key := fields[0].Type
	if !scalar(key) {
		return list, nil
	}
	value, err := c.value(fields[1].Type)
	if err != nil {
		return nil, err
	}
	asObject := object(func(dst []byte, name []byte) ([]byte, error) { return appendScalar(dst, key, string(name)) }, value)
	return func(dst []byte, t *tape, at int32) ([]byte, error) {
		if t.parts[at].kind == '[' {
			return list(dst, t, at)
		}
		return asObject(dst, t, at)
	}, nil
}

// object reads an object as a map's entries.
func object(key func(dst []byte, name []byte) ([]byte, error), value jsonFunc) jsonFunc {
	return func(dst []byte, t *tape, at int32) ([]byte, error) {
		members := t.parts[at]
		if members.kind != '{' {
			return dst, &misfit{"", "an object", t.show(members)}
		}
		n := int64(0)
		for name := at + 1; name < members.next; name = t.parts[name+1].next {
			n++
		}
		if n == 0 {
			return append(dst, 0), nil
		}
		dst = binary.AppendVarint(dst, n)
		for name := at + 1; name < members.next; name = t.parts[name+1].next {
			text := t.text(t.parts[name])
			var err error
			if dst, err = key(dst, text); err != nil {
				return dst, within("{key}", err)
			}
			if dst, err = value(dst, t, name+1); err != nil {
				return dst, within(fmt.Sprintf("{%.*s}", shownBytes, text), err)
			}
		}
		return append(dst, 0), nil
	}
}

// jsonScalar reads what holds nothing else.
func jsonScalar(s *schema.Schema) jsonFunc {
	strings, numbers := jsonKinds(s)
	return func(dst []byte, t *tape, at int32) ([]byte, error) {
		p := t.parts[at]
		switch {
		case p.kind == 'n' && s.Kind() == schema.KindNull:
			return dst, nil
		case p.kind == 't' && s.Kind() == schema.KindBoolean:
			return append(dst, 1), nil
		case p.kind == 'f' && s.Kind() == schema.KindBoolean:
			return append(dst, 0), nil
		case p.kind == '"' && s.Kind() == schema.KindString:
			return appendText(dst, t.text(p)), nil
		case p.kind == '"' && (s.Kind() == schema.KindFloat || s.Kind() == schema.KindDouble):
			switch string(t.text(p)) {
			case "NaN", "Infinity", "-Infinity":
				return appendScalar(dst, s, string(t.text(p)))
			}
		case p.kind == '"' && strings, p.kind == '0' && numbers:
			return appendScalar(dst, s, string(t.text(p)))
		}
		return dst, &misfit{"", s.Word(), t.show(p)}
	}
}

// jsonKinds tells in which of JSON's kinds a scalar may be written.
func jsonKinds(s *schema.Schema) (strings, numbers bool) {
	switch s.Logical() {
	case schema.LogicalTimestamp, logicalMillis, logicalNanos, schema.LogicalDuration, schema.LogicalDecimal:
		return true, true
	case logicalDate:
		return true, false
	case schema.LogicalUint64:
		return false, true
	}
	switch s.Kind() {
	case schema.KindString, schema.KindBytes, schema.KindFixed, schema.KindEnum:
		return true, false
	case schema.KindInt, schema.KindLong, schema.KindFloat, schema.KindDouble:
		return false, true
	}
	return false, false
}
