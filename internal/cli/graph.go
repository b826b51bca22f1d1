package cli

import (
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// node is an epoch of a branch.
type node struct {
	branch string
	epoch  epoch.Epoch
}

// graph draws the epochs of several branches below each other, the newest first. Each
// branch has a column; where one starts from an epoch of another, its column ends in
// that.
type graph struct {
	columns []*node // what each comes to next; nil: it is free
}

// add draws an epoch: the lines before its own, by which columns end in it, and its
// own. next is what its column comes to; nil: the column ends.
func (g *graph) add(at node, mark string, next *node) (joins []string, line string) {
	own := slices.IndexFunc(g.columns, func(n *node) bool { return n != nil && *n == at })
	for i := len(g.columns) - 1; own >= 0 && i > own; i-- {
		if n := g.columns[i]; n != nil && *n == at {
			joins = append(joins, g.join(own, i))
			g.columns[i] = nil
		}
	}
	if own < 0 {
		if own = slices.Index(g.columns, nil); own < 0 {
			own = len(g.columns)
			g.columns = append(g.columns, nil)
		}
	}
	g.columns[own] = &at
	line = g.draw(own, mark)
	g.columns[own] = next
	g.trim()
	return joins, line
}

// end ends the columns that come to epochs of a branch which are not there.
func (g *graph) end(branch string) {
	for i, n := range g.columns {
		if n != nil && n.branch == branch {
			g.columns[i] = nil
		}
	}
	g.trim()
}

func (g *graph) trim() {
	for n := len(g.columns); n > 0 && g.columns[n-1] == nil; n-- {
		g.columns = g.columns[:n-1]
	}
}

// draw is a line with a mark in one column.
func (g *graph) draw(own int, mark string) string {
	var b strings.Builder
	for i, n := range g.columns {
		switch {
		case i == own:
			b.WriteString(mark)
		case n != nil:
			b.WriteByte('|')
		default:
			b.WriteByte(' ')
		}
		b.WriteByte(' ')
	}
	return strings.TrimRight(b.String(), " ")
}

// join is a line in which a column goes over to one at its left: |_|/.
func (g *graph) join(to, from int) string {
	var b strings.Builder
	for i, n := range g.columns {
		over := i > to && i < from
		switch {
		case i == from: // its line has gone to the left
			b.WriteByte(' ')
		case n != nil:
			b.WriteByte('|')
		case over:
			b.WriteByte('_')
		default:
			b.WriteByte(' ')
		}
		switch {
		case i == from-1:
			b.WriteByte('/')
		case i >= to && i < from:
			b.WriteByte('_')
		default:
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}
