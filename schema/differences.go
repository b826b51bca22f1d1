package schema

import (
	"slices"
	"strings"
)

// Change is a way in which a schema can differ from an earlier one.
type Change string

// The changes.
const (
	// Added is a field that there was not.
	Added Change = "added"
	// Removed is a field that there is no more; its data would be dropped.
	Removed Change = "removed"
	// Reordered is fields, symbols or a union's branches in another order.
	Reordered Change = "reordered"
	// Renamed is a field that was found by its alias.
	Renamed Change = "renamed"
	// Widened is a type that holds all that the old one did.
	Widened Change = "widened"
	// Narrowed is a type that doesn't.
	Narrowed Change = "narrowed"
	// MadeNullable is a value that can be null now.
	MadeNullable Change = "made nullable"
	// MadeRequired is a value that can't be null any more.
	MadeRequired Change = "made required"
	// SymbolAdded is a symbol of an enum that there was not.
	SymbolAdded Change = "symbol added"
	// SymbolRemoved is a symbol of an enum that there is no more.
	SymbolRemoved Change = "symbol removed"
	// DefaultChanged is another value for data that lacks the field; what is
	// stored stays as it is.
	DefaultChanged Change = "default changed"
	// Retyped is another type altogether.
	Retyped Change = "retyped"
)

// Difference is one way in which a schema differs from an earlier one.
type Difference struct {
	// Path leads to what differs: "Tags[].Name", "Limits{}" for a map's values,
	// "Limits{key}" for its keys; "" is the whole.
	Path string
	// Change says in which way.
	Change Change
	// Old and New are the types in a few words, or what else changed: names,
	// symbols, defaults. One is "" where there is none.
	Old, New string
	// Resolves tells that the old data is carried over: by Avro's rules, or because
	// the new type means the same in another form.
	Resolves bool
	// MayFail tells that there are values which what resolves can't carry over, such
	// as those of a union's branch that the new type can't hold. Reading one is a
	// [*ValueError].
	MayFail bool
	// Narrows tells that what doesn't resolve can be read by consent
	// ([Type.Narrowing]): values that fit are carried over, and reading one that
	// doesn't is a [*ValueError].
	Narrows bool
	// Drops tells that old data would be lost.
	Drops bool
}

// String returns the difference in one line, such as
// "Tags[].Name: string → long".
func (d Difference) String() string {
	if d.Path == "" {
		return d.text()
	}
	return d.Path + ": " + d.text()
}

// text returns the difference without its path.
func (d Difference) text() string {
	arrow := d.Old + " → " + d.New
	switch d.Change {
	case Added, SymbolAdded:
		return string(d.Change) + " (" + d.New + ")"
	case Removed, SymbolRemoved:
		return string(d.Change) + " (" + d.Old + ")"
	case Retyped, Widened:
		return arrow
	case Renamed:
		return "renamed from " + d.Old
	case DefaultChanged:
		return "default " + arrow
	case Reordered:
		return "reordered: " + arrow
	}
	return arrow + " (" + string(d.Change) + ")"
}

// Differences returns everything in which a schema differs from an earlier one,
// each record before its fields, which come in the new order, with those that
// are gone behind. The names of types make no difference.
func Differences(old, now *Schema) []Difference {
	c := comparison{open: map[[2]*Schema]bool{}}
	c.compare("", old, now)
	return c.found
}

type comparison struct {
	found []Difference
	open  map[[2]*Schema]bool // the pairs of records that are being compared
	key   int                 // > 0 within a map's key
}

func (c *comparison) add(d Difference) {
	if c.key > 0 {
		// A key that reads as another would put two entries into one's place.
		d.Resolves = d.Resolves && d.Change == Widened
		d.Narrows = d.Narrows && d.Change == Narrowed
	}
	c.found = append(c.found, d)
}

// differ notes a change of a type.
func (c *comparison) differ(path string, v verdict, old, now *Schema) {
	c.add(Difference{Path: path, Change: v.change, Old: old.Word(), New: now.Word(), Resolves: v.resolves, MayFail: v.mayFail, Narrows: v.narrows})
}

func (c *comparison) compare(path string, old, now *Schema) {
	if old == now {
		return
	}
	if old.kind == KindUnion || now.kind == KindUnion {
		c.unions(path, old, now)
		return
	}
	if v := scalarVerdict(old, now); v.change != "" {
		c.differ(path, v, old, now)
		return
	}
	switch old.kind {
	case KindRecord:
		pair := [2]*Schema{old, now}
		if c.open[pair] {
			return
		}
		c.open[pair] = true
		c.records(path, old, now)
		delete(c.open, pair)
	case KindEnum:
		c.enums(path, old, now)
	case KindArray:
		c.arrays(path, old, now)
	case KindMap:
		c.compare(path+"{}", old.element, now.element)
	}
}

func (c *comparison) arrays(path string, old, now *Schema) {
	if old.length != now.length {
		v := verdict{change: Retyped}
		switch {
		case now.length == 0:
			v = verdict{change: Widened, resolves: true}
		case old.length == 0:
			v = verdict{change: Narrowed, narrows: true}
		}
		c.differ(path, v, old, now)
	}
	if old.logical != LogicalMap || now.logical != LogicalMap {
		c.compare(path+"[]", old.element, now.element)
		return
	}
	oldKey, oldValue := old.entry()
	nowKey, nowValue := now.entry()
	c.key++
	c.compare(path+"{key}", oldKey, nowKey)
	c.key--
	c.compare(path+"{}", oldValue, nowValue)
}

func (c *comparison) enums(path string, old, now *Schema) {
	if kept, order := inBoth(old.symbols, now.symbols), inBoth(now.symbols, old.symbols); !slices.Equal(kept, order) {
		c.add(Difference{Path: path, Change: Reordered, Old: strings.Join(kept, ", "), New: strings.Join(order, ", "), Resolves: true})
	}
	for _, s := range now.symbols {
		if !slices.Contains(old.symbols, s) {
			c.add(Difference{Path: path, Change: SymbolAdded, New: writtenSymbol(s), Resolves: true})
		}
	}
	for _, s := range old.symbols {
		if !slices.Contains(now.symbols, s) {
			// Where there is a symbol for others, it takes their place.
			replaced := now.fallback > 0
			c.add(Difference{Path: path, Change: SymbolRemoved, Old: writtenSymbol(s), Resolves: replaced, Drops: replaced, Narrows: !replaced})
		}
	}
}

// inBoth returns those of a that are also in b.
func inBoth(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

func (c *comparison) records(path string, old, now *Schema) {
	from := matchFields(old.fields, now.fields)
	c.fieldOrder(path, old, now, from)
	for i, f := range now.fields {
		here := join(path, f.Name)
		if from[i] < 0 {
			c.add(Difference{Path: here, Change: Added, New: f.Type.Word(), Resolves: f.Default != ""})
			continue
		}
		was := old.fields[from[i]]
		if was.Name != f.Name {
			c.add(Difference{Path: here, Change: Renamed, Old: was.Name, New: f.Name, Resolves: true})
		}
		before := len(c.found)
		c.compare(here, was.Type, f.Type)
		// A type that changed has another default as a matter of course.
		if was.Default != f.Default && len(c.found) == before {
			c.add(Difference{Path: here, Change: DefaultChanged, Old: was.Default, New: f.Default, Resolves: true})
		}
	}
	for i, f := range old.fields {
		if !slices.Contains(from, i) {
			c.add(Difference{Path: join(path, f.Name), Change: Removed, Old: f.Type.Word(), Resolves: true, Drops: true})
		}
	}
}

// fieldOrder notes if the fields that are in both stand in another order.
func (c *comparison) fieldOrder(path string, old, now *Schema, from []int) {
	kept := slices.DeleteFunc(slices.Clone(from), func(i int) bool { return i < 0 })
	if slices.IsSorted(kept) {
		return
	}
	var was, is []string
	for i, f := range now.fields {
		if from[i] >= 0 {
			is = append(is, f.Name)
		}
	}
	for i := range old.fields {
		if at := slices.Index(from, i); at >= 0 {
			was = append(was, now.fields[at].Name)
		}
	}
	c.add(Difference{Path: path, Change: Reordered, Old: strings.Join(was, ", "), New: strings.Join(is, ", "), Resolves: true})
}

// matchFields returns for each field of a reader which field of the writer it
// is read from, or -1: the one of its name, else the first of its aliases that
// is no other field's.
func matchFields(writer, reader []Field) []int {
	at := make(map[string]int, len(writer))
	for i, f := range writer {
		at[f.Name] = i
	}
	from := make([]int, len(reader))
	taken := make([]bool, len(writer))
	for r, f := range reader {
		from[r] = -1
		if i, ok := at[f.Name]; ok {
			from[r], taken[i] = i, true
		}
	}
	for r, f := range reader {
		for _, alias := range f.Aliases {
			if i, ok := at[alias]; ok && from[r] < 0 && !taken[i] {
				from[r], taken[i] = i, true
			}
		}
	}
	return from
}
