package carry

import "github.com/sluicestream/sluice/schema"

// RefusedPart is the part of a stored state that a refusal is about.
type RefusedPart uint8

// The parts of a stored state.
const (
	// OfValue: values of the stored type can't be read.
	OfValue RefusedPart = iota
	// OfMeaning: values mean something else now.
	OfMeaning
	// OfKey: keys have another type, or mean something else.
	OfKey
	// OfElement: elements of a map have another type.
	OfElement
	// OfKind: the state is of another kind.
	OfKind
	// OfOrder: a sorted state has kept the entries of the other end of its order.
	OfOrder
)

// Refusal says why a stored state can't be carried over.
type Refusal struct {
	Part RefusedPart
	// State is the stored state's name.
	State string
	// Path lies below the part, such as Tags[].Name; "" is the whole part.
	Path string
	// Text says what is wrong there.
	Text string
}

// String is the refusal as a line.
func (r Refusal) String() string {
	at := r.State
	switch r.Part {
	case OfKey:
		at += ", key"
	case OfElement:
		at += ", element"
	}
	return at + pathOf(r.Path) + ": " + r.Text
}

// OfRows tells whether the refusal is about where entries stand, not about what
// they hold.
func (r Refusal) OfRows() bool { return r.Part == OfKey || r.Part == OfElement }

// refused is a refusal of a difference.
func refused(part RefusedPart, state string, d schema.Difference, why string) Refusal {
	path := d.Path
	d.Path = ""
	return Refusal{Part: part, State: state, Path: path, Text: d.String() + ": " + why}
}
