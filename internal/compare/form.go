package compare

import (
	"slices"
	"unicode/utf8"

	"github.com/sluicestream/sluice/schema"
)

// form is the schema of rows as one build froze them; there is one for each.
type form struct {
	schema *schema.Schema
	names  []string // of the columns
	skips  []func(src []byte) (int, error)
	texts  []asJSON
	json   asJSON // of the whole row
}

// asJSON appends the text of the value that src begins with.
type asJSON = func(dst, src []byte) (out, rest []byte, err error)

func newForm(s *schema.Schema) *form {
	f := &form{schema: s, json: schema.JSON(s)}
	for _, c := range columnsOf(s) {
		f.names = append(f.names, c.Name)
		f.skips = append(f.skips, schema.Skipper(c.Type))
		f.texts = append(f.texts, schema.JSON(c.Type))
	}
	return f
}

// columnsOf are a row's columns: a record's fields, or the row itself.
func columnsOf(s *schema.Schema) []schema.Field {
	if s.Kind() != schema.KindRecord {
		return []schema.Field{{Name: "", Type: s}}
	}
	return s.Fields()
}

// Columns are the names of the columns that rows of a schema have.
func Columns(row *schema.Schema) (names []string) {
	for _, c := range columnsOf(row) {
		names = append(names, c.Name)
	}
	return names
}

// split appends where the columns of a row end.
func (f *form) split(ends []int, row []byte) ([]int, error) {
	at := 0
	for _, skip := range f.skips {
		n, err := skip(row[at:])
		if err != nil {
			return ends, err
		}
		at += n
		ends = append(ends, at)
	}
	return ends, nil
}

// cell is a column's bytes.
func cell(row []byte, ends []int, column int) []byte {
	if column == 0 {
		return row[:ends[0]]
	}
	return row[ends[column-1]:ends[column]]
}

// told is a value's text, cut where it is long.
func told(write asJSON, value []byte) (string, error) {
	out, _, err := write(nil, value)
	if err != nil || len(out) <= maxSampleBytes {
		return string(out), err
	}
	cut := maxSampleBytes
	for !utf8.RuneStart(out[cut]) {
		cut--
	}
	return string(out[:cut]) + "…", nil
}

// pair is what compares rows of two forms.
type pair struct {
	forms [2]*form
	// same tells that equal bytes are equal rows.
	same    bool
	columns []columnPair
	// tolerant tells that a column has a tolerance.
	tolerant bool

	// Memory that is used again.
	ends [2][]int
	form [2][]byte
	in   scan
}

// columnPair is a column that both sides have and that is compared.
type columnPair struct {
	name      string
	at        [2]int // which of the row's columns it is
	same      bool   // equal bytes are equal values
	canon     canons
	tolerance *tolerance
}

// newPair compiles two forms. differ is told of each difference of the schemas.
func newPair(job, sink string, columns map[string]Column, old, now *form, differ func(schema.Difference)) (*pair, error) {
	p := &pair{forms: [2]*form{old, now}}
	differences := schema.Differences(old.schema, now.schema)
	p.same = len(differences) == 0
	for _, d := range differences {
		if name := topOf(d.Path); !columns[name].Ignore {
			differ(d)
		}
	}
	before, after := columnsOf(old.schema), columnsOf(now.schema)
	shared := [][2]int{{0, 0}}
	if old.schema.Kind() == schema.KindRecord && now.schema.Kind() == schema.KindRecord {
		shared = sharedFields(old.schema, now.schema)
	}
	for _, at := range shared {
		a, b := before[at[oldSide]], after[at[newSide]]
		option := columns[b.Name]
		if option.Ignore || columns[a.Name].Ignore {
			continue
		}
		c := columnPair{
			name: b.Name, at: at,
			same:  len(schema.Differences(a.Type, b.Type)) == 0,
			canon: newCanonizer(option.Unordered).compile(a.Type, b.Type),
		}
		if option.tolerant() {
			if err := fits(job, sink, b.Name, option, a.Type, b.Type); err != nil {
				return nil, err
			}
			c.tolerance = &tolerance{option.Absolute, option.Relative, option.Time}
			p.tolerant = true
		}
		p.columns = append(p.columns, c)
	}
	return p, nil
}

// topOf is the column that a path leads into.
func topOf(path string) string {
	for i, c := range path {
		if c == '.' || c == '[' || c == '{' {
			return path[:i]
		}
	}
	return path
}

// fits tells whether a column has values that the tolerance is for, on either side.
func fits(job, sink, name string, o Column, types ...*schema.Schema) error {
	wanted, words := []class{number, duration}, "numbers or durations for a tolerance of Absolute or Relative"
	switch {
	case o.Time > 0 && o.Absolute == 0:
		wanted, words = []class{moment, duration}, "moments or durations for a tolerance of Time"
	case o.Absolute > 0 && o.Time == 0:
		wanted, words = []class{number}, "numbers for a tolerance of Absolute"
	case o.Absolute > 0:
		wanted, words = nil, "a tolerance of Absolute, for numbers, or of Time, for moments and durations"
	}
	for _, s := range types {
		for _, alternative := range alternativesOf(s) {
			if slices.Contains(wanted, classOf(alternative)) {
				return nil
			}
		}
	}
	if wanted == nil {
		return &OptionError{job, sink, name, words, "both"}
	}
	return &OptionError{job, sink, name, words, types[len(types)-1].Word()}
}

// equal tells whether two rows are equal. The bytes of canonical forms hold until the
// next call.
func (p *pair) equal(old, now []byte) (bool, error) {
	if p.same && string(old) == string(now) {
		return true, nil
	}
	if err := p.split(old, now); err != nil {
		return false, err
	}
	for i := range p.columns {
		ok, err := p.equalColumn(&p.columns[i], old, now)
		if !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (p *pair) split(old, now []byte) (err error) {
	if p.ends[oldSide], err = p.forms[oldSide].split(p.ends[oldSide][:0], old); err != nil {
		return err
	}
	p.ends[newSide], err = p.forms[newSide].split(p.ends[newSide][:0], now)
	return err
}

// equalColumn compares a column of the rows that were split last.
func (p *pair) equalColumn(c *columnPair, old, now []byte) (bool, error) {
	a, b := cell(old, p.ends[oldSide], c.at[oldSide]), cell(now, p.ends[newSide], c.at[newSide])
	if c.same && string(a) == string(b) {
		return true, nil
	}
	for side, value := range [2][]byte{a, b} {
		p.in = scan{src: value}
		p.form[side] = c.canon[side](p.form[side][:0], &p.in)
		if p.in.bad {
			return false, errValue
		}
	}
	if string(p.form[oldSide]) == string(p.form[newSide]) {
		return true, nil
	}
	return c.tolerance != nil && c.tolerance.allows(p.form[oldSide], p.form[newSide]), nil
}

// differing calls yield with each column in which two rows differ.
func (p *pair) differing(old, now []byte, yield func(c *columnPair, old, now []byte) error) error {
	if err := p.split(old, now); err != nil {
		return err
	}
	for i := range p.columns {
		c := &p.columns[i]
		ok, err := p.equalColumn(c, old, now)
		if err == nil && !ok {
			err = yield(c, cell(old, p.ends[oldSide], c.at[oldSide]), cell(now, p.ends[newSide], c.at[newSide]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// canonical appends the form of a row's columns that are compared exactly: rows of the
// two sides that are equal have equal forms.
func (p *pair) canonical(dst []byte, side int, row []byte) (_ []byte, err error) {
	if p.ends[side], err = p.forms[side].split(p.ends[side][:0], row); err != nil {
		return dst, err
	}
	for i := range p.columns {
		c := &p.columns[i]
		if c.tolerance != nil {
			continue
		}
		p.in = scan{src: cell(row, p.ends[side], c.at[side])}
		if dst = c.canon[side](dst, &p.in); p.in.bad {
			return dst, errValue
		}
	}
	return dst, nil
}

// tolerated appends the forms of the columns that have a tolerance, each as an item.
func (p *pair) tolerated(side int, row []byte) (items [][]byte, err error) {
	if p.ends[side], err = p.forms[side].split(p.ends[side][:0], row); err != nil {
		return nil, err
	}
	for i := range p.columns {
		c := &p.columns[i]
		if c.tolerance == nil {
			continue
		}
		p.in = scan{src: cell(row, p.ends[side], c.at[side])}
		form := c.canon[side](nil, &p.in)
		if p.in.bad {
			return nil, errValue
		}
		items = append(items, form)
	}
	return items, nil
}
