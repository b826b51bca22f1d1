package carry

import (
	"fmt"
	"iter"

	"github.com/sluicestream/sluice/schema"
)

// rekeyer gives the new rows of an entry.
type rekeyer[R any, S any] func(key, element []byte, s S) (iter.Seq2[R, S], error)

// keys decides what becomes of a stored state's keys: nil if they stay as they
// are encoded.
func (c *carrier[R, S]) keys(w *Way, source *Source) rekeyer[R, S] {
	s, target := source.Stored, c.target
	stay := SameEncoding(s.Form.Key, target.Form.Key) && sameElements(s.Form.Element, target.Form.Element)
	meant := s.KeyMeaning == target.KeyMeaning
	// What a version with a function for keys holds has been through it, unless the
	// keys are others or mean something else.
	passed := s.MigratesKeys && stay && meant
	alike := stay && meant && s.Name == target.Form.Name && s.Form.Key.Equal(target.Form.Key)
	var cause error
	if c.spec.Keys != nil && !passed && !alike {
		rekey, err := c.spec.Keys.Open(s.Form.Key, s.Form.Element)
		if err == nil {
			source.Keys = c.spec.Keys.Function
			return rekey
		}
		cause = fmt.Errorf("can't be carried over by %s: %w", c.spec.Keys.Function, err)
	}
	if cause != nil && (!stay || !meant) {
		w.Refusals = append(w.Refusals, Refusal{OfKey, s.Name, "", cause.Error()})
		return nil
	}
	if !meant {
		w.Refusals = append(w.Refusals, Refusal{OfKey, s.Name, "", fmt.Sprintf("its meaning is %d and was %d: the keys mean something else now, and no MigrateKeys says what becomes of them", target.KeyMeaning, s.KeyMeaning)})
	}
	if stay {
		return nil
	}
	c.refuseKeys(w, OfKey, s.Name, s.Form.Key, target.Form.Key)
	if s.Form.Element != nil && target.Form.Element != nil {
		c.refuseKeys(w, OfElement, s.Name, s.Form.Element, target.Form.Element)
	}
	return nil
}

func (c *carrier[R, S]) refuseKeys(w *Way, part RefusedPart, state string, old, now *schema.Schema) {
	if SameEncoding(old, now) {
		return
	}
	for _, d := range schema.Differences(old, now) {
		w.Refusals = append(w.Refusals, refused(part, state, d, "stored keys can't be carried over without MigrateKeys"))
	}
}

func sameElements(old, now *schema.Schema) bool {
	if old == nil || now == nil {
		return old == now
	}
	return SameEncoding(old, now)
}

// SameEncoding tells whether each key of the old schema is encoded by the new one
// in the same bytes, and no two keys become one: then stored entries stay where
// they are. Integers may become wider, and fields may have other names.
func SameEncoding(old, now *schema.Schema) bool {
	if old.Equal(now) {
		return true
	}
	if oldBits, oldSigned := old.Integer(); oldBits > 0 {
		bits, signed := now.Integer()
		varint := func(s *schema.Schema) bool { return s.Kind() == schema.KindInt || s.Kind() == schema.KindLong }
		return varint(old) && varint(now) && now.Logical() == old.Logical() && (signed && bits > oldBits || signed == oldSigned && bits >= oldBits)
	}
	if old.Kind() != now.Kind() || old.Logical() != now.Logical() {
		return false
	}
	switch old.Kind() {
	case schema.KindString, schema.KindBoolean, schema.KindBytes:
		return true
	case schema.KindFixed:
		return old.Size() == now.Size()
	case schema.KindRecord:
		a, b := old.Fields(), now.Fields()
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameField(a[i], b[i]) || !SameEncoding(a[i].Type, b[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// sameField tells whether a field is another's successor: of its name, or with
// that as an alias.
func sameField(old, now schema.Field) bool {
	if old.Name == now.Name {
		return true
	}
	for _, alias := range now.Aliases {
		if alias == old.Name {
			return true
		}
	}
	return false
}
