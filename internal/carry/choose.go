package carry

import (
	"fmt"

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
// author's function is never passed over for Avro's rules where it fits. Then
// comes the type that differs the least of those that lose nothing; of equal ones
// the older, for its functions say more than defaults do. Then the one that
// loses the least. The refusals say why there is none.
func choose(stored Stored, candidates []candidate) (choice, []Refusal) {
	var exact []int
	best, bestCost := choice{number: -1}, cost{}
	for i, c := range candidates {
		if c.meant && c.meaning != stored.Meaning {
			continue
		}
		differences := schema.Differences(stored.Form.Value, c.schema)
		if len(differences) == 0 {
			exact = append(exact, i)
			continue
		}
		price, ok := costOf(differences)
		if ok && (best.number < 0 || !bestCost.less(price)) {
			best, bestCost = choice{i, differences}, price
		}
	}
	switch {
	case len(exact) == 1 || len(exact) > 1 && exact[0] == 0:
		return choice{number: exact[0]}, nil
	case len(exact) > 1:
		return choice{}, []Refusal{{OfValue, stored.Name, "", fmt.Sprintf("%d types of its migrations are what is stored; tell them apart by their meanings, with From", len(exact))}}
	case best.number >= 0:
		return best, nil
	}
	return choice{}, refusals(stored, candidates)
}

// cost is what reading as another type takes.
type cost struct{ drops, differences int }

func (c cost) less(than cost) bool {
	if c.drops != than.drops {
		return c.drops < than.drops
	}
	return c.differences < than.differences
}

// costOf is that of differences; ok is false if they can't be read over.
func costOf(differences []schema.Difference) (c cost, ok bool) {
	for _, d := range differences {
		switch {
		case d.Drops || d.Narrows:
			c.drops++
		case !d.Resolves:
			return c, false
		}
		c.differences++
	}
	return c, true
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
