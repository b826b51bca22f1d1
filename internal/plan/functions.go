package plan

import (
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// bare is a function's name without its package, which may move: Order.User for
// orders.Order.User.
func bare(function string) string {
	_, name, ok := strings.Cut(function, ".")
	if !ok {
		return function
	}
	return name
}

// renamed tells the names of a part's function, before, as another's perhaps, and
// now, if they differ. A function that has no name can't be told from another.
func (c *comparison) renamed(part, from string) (was, is string, differs bool) {
	was, is = c.Old.Functions[from], c.New.Functions[part]
	return was, is, was != "" && is != "" && bare(was) != bare(is)
}

// noteFunction notes that a function has another name.
func (c *comparison) noteFunction(l *Line, what, part string) (differs bool) {
	was, is, differs := c.renamed(part, part)
	if differs {
		l.Note("its " + what + " is " + is + ", and was " + was)
	}
	return differs
}

// crossed finds an operator whose function this one has now, which goes on with the
// states of one that had another, and that nobody goes on with who has the function,
// though both keep values of one type: by types alone, nobody would see that they
// were mixed up.
func (c *comparison) crossed(operator, from string) (other string, is bool) {
	_, now, differs := c.renamed(operator, from)
	if !differs || c.saysSo(operator, from, false) {
		return "", false
	}
	for name := range sorted(c.Old.Operators) {
		if name == from || bare(c.Old.Functions[name]) != bare(now) || !sameValues(c.Old, from, name) {
			continue
		}
		if !slices.ContainsFunc(c.successors(name), func(by string) bool { return bare(c.New.Functions[by]) == bare(now) && by != operator }) {
			return name, true
		}
	}
	return "", false
}

// exchangedKey finds an operator by whose key function this one is keyed now, which
// goes on with the states of one that was keyed by another.
func (c *comparison) exchangedKey(operator, from string) (other string, is bool) {
	_, now, differs := c.renamed(epoch.KeyFunction(operator), epoch.KeyFunction(from))
	if !differs || c.saysSo(operator, from, true) {
		return "", false // the author says so, and the state's way what becomes of it
	}
	for name := range sorted(c.Old.Operators) {
		if name != from && bare(c.Old.Functions[epoch.KeyFunction(name)]) == bare(now) {
			return name, true
		}
	}
	return "", false
}

// sameValues tells whether the states that two operators are named by have values
// and keys of one type.
func sameValues(v epoch.Version, a, b string) bool {
	x, y := v.States[a], v.States[b]
	return x.Kind == y.Kind && sameSchema(x.Value, y.Value) && sameSchema(x.Key, y.Key)
}

// sameSchema tells whether two schemas differ in the names of types at most.
func sameSchema(a, b string) bool {
	if a == b {
		return true
	}
	x, err := schema.Parse([]byte(a))
	if err != nil {
		return false
	}
	y, err := schema.Parse([]byte(b))
	return err == nil && len(schema.Differences(x, y)) == 0
}
