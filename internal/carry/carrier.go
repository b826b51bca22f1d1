package carry

import (
	"errors"
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// Carrier is a state of this build, as far as carrying over goes.
type Carrier interface {
	// Find decides how the state comes from what is stored; stored gives the
	// stored state of a name, or nil.
	Find(stored func(name string) *Stored) *Way
	// Takes are the names of other states that it takes over.
	Takes() []string
	// Migrations are the types that its functions migrate values from, and
	// MigratesKeys tells whether it has a function for keys; for the description of
	// the version.
	Migrations() []*schema.Schema
	MigratesKeys() bool
}

// Spec is what an author says of how a state of rows R with values S is carried
// over. Rows are keys, or keys with an element.
type Spec[R any, S any] struct {
	// Chain migrates values.
	Chain Chain[S]
	// Keys migrates keys; nil if there is nothing to migrate.
	Keys *Keys[R, S]
	// Takes are the states that it takes over.
	Takes []Taken[S]
	// Merge puts two values together that meet at one row, the earlier in its
	// place; nil: two that meet are an error.
	Merge func(earlier *S, later S)
}

// Taken is a state of another name that is taken over.
type Taken[S any] struct {
	Name string
	// Chain migrates its values; that of the spec does if it is empty.
	Chain Chain[S]
}

// Keys migrates keys: one old entry to any number of new ones.
type Keys[R any, S any] struct {
	// Function is the name of the author's function.
	Function string
	// Alike, if set, tells whether keys, and elements, of these schemas are just what it
	// takes.
	Alike func(key, element *schema.Schema) bool
	// Open prepares for stored keys, and elements, of these schemas. The error says
	// that the function can't take them.
	Open func(key, element *schema.Schema) (func(key, element []byte, s S) (iter.Seq2[R, S], error), error)
}

// Codec encodes the rows and values of a state.
type Codec[R any, S any] struct {
	AppendKey     func(dst []byte, r *R) []byte
	AppendElement func(dst []byte, r *R) []byte // nil if the key is all
	Value         *schema.Type[S]
}

// Target is what a state is in this build.
type Target struct {
	Kind                string
	Limit               state.Limit
	Meaning, KeyMeaning int
	Form                state.Form
}

// New returns the carrier of a state.
func New[R any, S any](target Target, codec Codec[R, S], spec Spec[R, S]) (Carrier, error) {
	c := &carrier[R, S]{target, codec, spec}
	for _, chain := range c.chains() {
		candidates, err := c.candidates(chain)
		if err != nil {
			return nil, err
		}
		if err := tellApart(candidates); err != nil {
			return nil, err
		}
	}
	if spec.Keys != nil && len(spec.Takes) == 0 && target.KeyMeaning == 0 {
		if spec.Keys.Alike != nil && spec.Keys.Alike(target.Form.Key, target.Form.Element) {
			return nil, fmt.Errorf("%s takes keys that are stored as the state's own: raise the key's Meaning, so that it is called once", spec.Keys.Function)
		}
	}
	if len(spec.Takes) > 1 && spec.Merge == nil {
		return nil, errors.New("it takes over several states, whose values may meet at one key: say with Merge what becomes of these")
	}
	return c, nil
}

type carrier[R any, S any] struct {
	target Target
	codec  Codec[R, S]
	spec   Spec[R, S]
}

func (c *carrier[R, S]) chains() []Chain[S] {
	all := []Chain[S]{c.spec.Chain}
	for _, t := range c.spec.Takes {
		all = append(all, t.Chain)
	}
	return all
}

// Takes implements [Carrier].
func (c *carrier[R, S]) Takes() (names []string) {
	for _, t := range c.spec.Takes {
		names = append(names, t.Name)
	}
	return names
}

// Migrations implements [Carrier].
func (c *carrier[R, S]) Migrations() (all []*schema.Schema) {
	for _, chain := range c.chains() {
		for _, s := range chain.steps {
			if o, err := s.open(c.target.Form.Name); err == nil { // New has seen that
				all = append(all, o.schema)
			}
		}
	}
	return all
}

// MigratesKeys implements [Carrier].
func (c *carrier[R, S]) MigratesKeys() bool { return c.spec.Keys != nil }

// Find implements [Carrier].
func (c *carrier[R, S]) Find(stored func(name string) *Stored) *Way {
	w := &Way{State: c.target.Form.Name, Form: c.target.Form, Verdict: Empty, Numbered: c.target.Kind == "list", Limit: c.target.Limit}
	if c.spec.Merge != nil {
		w.Merge = c.merge
	}
	if own := stored(w.State); own != nil {
		w.Verdict = Same
		c.add(w, *own, c.spec.Chain)
		w.Untaken = c.Takes()
	} else {
		for _, t := range c.spec.Takes {
			s := stored(t.Name)
			if s == nil {
				w.Untaken = append(w.Untaken, t.Name)
				continue
			}
			if w.Verdict == Empty {
				w.Verdict = Resolves // if only that its name is another
			}
			chain := t.Chain
			if chain.Empty() {
				chain = c.spec.Chain
			}
			c.add(w, *s, chain)
		}
	}
	w.Ordered = len(w.Sources) == 1 && w.Sources[0].Keys == ""
	if len(w.Refusals) > 0 {
		w.Verdict = Refused
	}
	return w
}

// add adds a stored state to what a way reads, or to its refusals.
func (c *carrier[R, S]) add(w *Way, s Stored, chain Chain[S]) {
	refuse := func(part RefusedPart, text string) {
		w.Refusals = append(w.Refusals, Refusal{Part: part, State: s.Name, Text: text})
	}
	if s.Kind != c.target.Kind {
		refuse(OfKind, fmt.Sprintf("a state of another kind: it was a %s state and is a %s state", s.Kind, c.target.Kind))
		return
	}
	source := Source{Stored: s}
	rekey := c.keys(w, &source)
	if s.Limit.Descending != c.target.Limit.Descending && source.Keys == "" {
		refuse(OfOrder, fmt.Sprintf("it was %s and is %s: the entries that a key has kept are those of the other end", orderOf(s.Limit), orderOf(c.target.Limit)))
	}
	candidates, err := c.candidates(chain)
	if err != nil {
		refuse(OfValue, err.Error())
		return
	}
	chosen, refusals := choose(s, candidates)
	if len(refusals) > 0 {
		w.Refusals = append(w.Refusals, refusals...)
		return
	}
	source.Differences, source.Functions = chosen.differences, candidates[chosen.number].functions
	for _, d := range chosen.differences {
		if d.Drops || d.Narrows {
			w.Drops = append(w.Drops, s.Name+pathOf(d.Path))
		}
	}
	read, err := c.reader(chain, len(candidates)-1-chosen.number, s.Form.Value)
	if err != nil {
		refuse(OfValue, err.Error())
		return
	}
	switch {
	case len(source.Functions) > 0 || source.Keys != "":
		w.Verdict = max(w.Verdict, Migrates)
	case c.target.Limit.Entries < s.Limit.Entries || len(source.Differences) > 0 || !s.Form.Key.Equal(c.target.Form.Key) || !sameElement(s.Form, c.target.Form) || !s.Form.Value.Equal(c.target.Form.Value):
		w.Verdict = max(w.Verdict, Resolves)
	}
	source.convert = func(w *Way) func(e *state.Entry, put func(Row) error) error {
		return c.converter(w, &source, read, rekey)
	}
	w.Sources = append(w.Sources, source)
}

// candidates are the types that stored values could be read as, for choose.
func (c *carrier[R, S]) candidates(chain Chain[S]) ([]candidate, error) {
	all := []candidate{{schema: c.target.Form.Value, meaning: c.target.Meaning, meant: true}}
	for i := len(chain.steps) - 1; i >= 0; i-- {
		s := chain.steps[i]
		o, err := s.open(c.target.Form.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, candidate{o.schema, s.meaning, s.meant, s.functions})
	}
	return all, nil
}

// reader reads stored values: as the chain's type of a number, or as the state's
// own, which comes behind.
func (c *carrier[R, S]) reader(chain Chain[S], number int, stored *schema.Schema) (func() func(src []byte, s *S) error, error) {
	if number < len(chain.steps) {
		o, err := chain.steps[number].open(c.target.Form.Name)
		if err != nil {
			return nil, err
		}
		open, err := o.reader(stored)
		if err != nil {
			return nil, err
		}
		return open, nil
	}
	read, err := readerOf(c.codec.Value, stored)
	if err != nil {
		return nil, err
	}
	return func() func([]byte, *S) error {
		return func(src []byte, s *S) error { return readAll(read, src, s) }
	}, nil
}

// merge puts two encoded values together.
func (c *carrier[R, S]) merge(dst, earlier, later []byte) ([]byte, error) {
	var a, b S
	if err := readAll(c.codec.Value.Decode, earlier, &a); err != nil {
		return dst, err
	}
	if err := readAll(c.codec.Value.Decode, later, &b); err != nil {
		return dst, err
	}
	if err := c.put(&a, b); err != nil {
		return dst, err
	}
	return c.codec.Value.Append(dst, &a)
}

func (c *carrier[R, S]) put(a *S, b S) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &functionError{FunctionName(c.spec.Merge), fmt.Errorf("panic: %v", p)}
		}
	}()
	c.spec.Merge(a, b)
	return nil
}

func orderOf(l state.Limit) string {
	if l.Descending {
		return "descending"
	}
	return "ascending"
}

func sameElement(a, b state.Form) bool {
	if a.Element == nil || b.Element == nil {
		return a.Element == b.Element
	}
	return a.Element.Equal(b.Element)
}
