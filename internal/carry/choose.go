package carry

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/schema"
)

// candidate is a type that stored values could be read as: the state's own, or
// one of its chain.
type candidate struct {
	schema    *schema.Schema
	meaning   int
	meant     bool // it is for that meaning only
	functions []string
}

// choice is the type that stored values are read as.
type choice struct {
	number      int // of the candidate
	differences []schema.Difference
}

// choose decides which type stored values are read as. candidates begin with the
// state's own type; those of the chain follow, the newest first.
//
// A type that is exactly what is stored counts before all others, so that an
// author's function is never passed over for Avro's rules where it fits. All
// others lose something or add something. Of these what loses nothing goes before
// what does, and among several types of the chain the one that differs the least.
// Where both the own type and one of the chain would do, nothing but the author
// can tell whether the function is still to be called.
//
// A type that the functions of the stored version took already is no candidate:
// what is stored has been through them. The refusals say why there is none.
func choose(stored Stored, candidates []candidate) (choice, []Refusal) {
	var exact []int
	var fitting []fit
	for i, c := range candidates {
		if c.meant && c.meaning != stored.Meaning || !c.meant && stored.passed(c.schema) {
			continue
		}
		differences := schema.Differences(stored.Form.Value, c.schema)
		if len(differences) == 0 {
			exact = append(exact, i)
			continue
		}
		if drops, ok := dropsOf(differences); ok {
			fitting = append(fitting, fit{choice{i, differences}, drops})
		}
	}
	refuse := func(text string) (choice, []Refusal) {
		return choice{}, []Refusal{{OfValue, stored.Name, "", text}}
	}
	switch {
	case len(exact) == 1 || len(exact) > 1 && exact[0] == 0:
		return choice{number: exact[0]}, nil
	case len(exact) > 1:
		return refuse(fmt.Sprintf("%d types of its migrations are what is stored; tell them apart by their meanings, with From", len(exact)))
	case len(fitting) == 0:
		return choice{}, refusals(stored, candidates)
	}
	slices.SortStableFunc(fitting, fit.compare)
	best := fitting[0]
	for _, f := range fitting[1:] {
		switch {
		case (f.drops > 0) != (best.drops > 0):
		case best.number == 0 || f.number == 0:
			of := candidates[max(f.number, best.number)]
			return refuse(fmt.Sprintf("what is stored could be read as it is now, or as what %s takes, and only you know whether it has been through that function: raise the state's Meaning, and say with From what the function takes", of.functions[0]))
		case f.compare(best) == 0:
			return refuse(fmt.Sprintf("what is stored differs by as much from what %s takes and from what %s does; tell them apart by their meanings, with From", candidates[best.number].functions[0], candidates[f.number].functions[0]))
		}
	}
	return best.choice, nil
}

// passed tells whether what is stored has been through a function that takes a
// type: the version that stored it had one.
func (s *Stored) passed(typ *schema.Schema) bool {
	return slices.ContainsFunc(s.Migrations, func(m *schema.Schema) bool { return len(schema.Differences(m, typ)) == 0 })
}

// fit is a type that what is stored can be read as, by Avro's rules.
type fit struct {
	choice
	drops int
}

// compare orders by what gets lost, then by how much differs.
func (f fit) compare(g fit) int {
	return cmp.Or(cmp.Compare(f.drops, g.drops), cmp.Compare(len(f.differences), len(g.differences)))
}

// dropsOf counts what gets lost, or some of it; ok is false if it can't be read
// over.
func dropsOf(differences []schema.Difference) (drops int, ok bool) {
	for _, d := range differences {
		switch {
		case d.Drops || d.Narrows:
			drops++
		case !d.Resolves:
			return 0, false
		}
	}
	return drops, true
}

func refusals(stored Stored, candidates []candidate) (out []Refusal) {
	own := candidates[0]
	if own.meaning != stored.Meaning {
		out = append(out, Refusal{OfMeaning, stored.Name, "", fmt.Sprintf("its meaning is %d and was %d: the values mean something else now, and no migration says what becomes of them", own.meaning, stored.Meaning)})
	}
	for _, d := range schema.Differences(stored.Form.Value, own.schema) {
		if !d.Resolves && !d.Narrows {
			out = append(out, refused(OfValue, stored.Name, d, "can't be carried over"))
		}
	}
	if len(out) > 0 && len(candidates) > 1 {
		out[len(out)-1].Text += fmt.Sprintf("; nor is it what one of its %d migrations takes", len(candidates)-1)
	}
	return out
}

// pathOf is a path as it stands behind a name.
func pathOf(path string) string {
	if path == "" || path[0] == ':' || path[0] == '[' || path[0] == '{' {
		return path
	}
	return "." + path
}

// tellApart returns an error if two types have one schema and nothing says which
// of them stored values of it are: a function could then be called on what has
// been through it.
func tellApart(candidates []candidate) error {
	for i, a := range candidates {
		for _, b := range candidates[i+1:] {
			if len(schema.Differences(a.schema, b.schema)) == 0 && !(a.meant && b.meant && a.meaning != b.meaning) {
				return fmt.Errorf("what %s takes has the schema of a later type of its migrations: tell them apart by their meanings, with From and the state's Meaning", b.functions[0])
			}
		}
	}
	return nil
}
