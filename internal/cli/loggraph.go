package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// graphEntry is one epoch of one of several branches.
type graphEntry struct {
	Branch string `json:"branch"`
	entry
	// Live is the generation under which it was written, Covers the position up to
	// which a follower has covered the live branch with it.
	Live   *epoch.Generation `json:"live,omitempty"`
	Covers *epoch.Position   `json:"covers,omitempty"`
	// Base is the epoch that a branch starts from, with its first. GoesLive is the
	// generation as which the branch goes live behind it.
	Base     *basePoint        `json:"base,omitempty"`
	GoesLive *epoch.Generation `json:"goes_live,omitempty"`

	joins []string // lines of the graph before its own
	line  string
}

// The marks of epochs in a graph.
const (
	liveMark   = "*"
	followMark = "o"
	sealMark   = "x"
)

func markOf(m epoch.Manifest) string {
	switch {
	case m.Kind == epoch.Seal:
		return sealMark
	case m.Live == nil && m.Branch != epoch.MainBranch:
		return followMark
	}
	return liveMark
}

// strand is a branch of which epochs are still to be drawn.
type strand struct {
	branch string
	base   *basePoint
	at     *epoch.Manifest // the next to be drawn; nil: none is left
	pull   func() (epoch.Manifest, error, bool)
}

// step takes the next epoch of the branch.
func (s *strand) step() error {
	m, err, ok := s.pull()
	if s.at = &m; !ok || err != nil {
		s.at = nil
	}
	return err
}

// graphOf draws the epochs of all branches, the newest first: at most limit of them, if
// that is not 0, and none from before a time.
func graphOf(ctx context.Context, job *epoch.Job, limit int, since int64) ([]graphEntry, error) {
	bs, err := lookAtBranches(ctx, job)
	if err != nil {
		return nil, err
	}
	var strands []*strand
	for _, b := range bs.All {
		if b.Gone || !b.Begun && !b.Head.Sealed() {
			continue
		}
		pull, stop := iter.Pull2(newestFirst(ctx, job, b.Name, lastOf(b), limit, since))
		defer stop()
		s := &strand{branch: b.Name, base: baseOf(b, bs.Task), pull: pull}
		if err := s.step(); err != nil {
			return nil, err
		}
		strands = append(strands, s)
	}
	var g graph
	var entries []graphEntry
	for limit == 0 || len(entries) < limit {
		s := newestStrand(strands)
		if s == nil {
			break
		}
		m := *s.at
		if err := s.step(); err != nil {
			return nil, err
		}
		e := graphEntryOf(m, s.base, bs.Records)
		e.joins, e.line = g.add(node{m.Branch, m.Epoch}, markOf(m), s.next(m, strands))
		if s.at == nil {
			g.end(s.branch)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func lastOf(b upgrade.Branch) epoch.Epoch {
	if b.Head.Sealed() {
		return b.Head.Seal.Epoch
	}
	return b.Head.Manifest.Epoch
}

// newestStrand is the one whose next epoch is the newest by its time, but that an epoch
// comes behind all that start from it, whatever the clocks of their writers; nil if none
// is left.
func newestStrand(strands []*strand) *strand {
	var newest, blocked *strand
	for _, s := range strands {
		if s.at == nil {
			continue
		}
		awaits := slices.ContainsFunc(strands, func(o *strand) bool {
			return o != s && o.at != nil && o.base != nil && o.base.Branch == s.branch && o.base.Epoch == s.at.Epoch
		})
		best := &newest
		if awaits {
			best = &blocked
		}
		if *best == nil || s.at.Time > (*best).at.Time {
			*best = s
		}
	}
	if newest == nil { // branches that start from each other: a record is wrong
		return blocked
	}
	return newest
}

// next is what the column of an epoch that was drawn comes to: the epoch before, or
// that which the branch starts from, if it is to be drawn.
func (s *strand) next(drawn epoch.Manifest, strands []*strand) *node {
	if s.at != nil {
		return &node{s.branch, s.at.Epoch}
	}
	if drawn.Epoch != 0 || s.base == nil {
		return nil
	}
	for _, o := range strands {
		if o.branch == s.base.Branch && o.at != nil && o.at.Epoch >= s.base.Epoch {
			return &node{o.branch, s.base.Epoch}
		}
	}
	return nil
}

func graphEntryOf(m epoch.Manifest, base *basePoint, records []epoch.LiveRecord) graphEntry {
	e := graphEntry{Branch: m.Branch, entry: entryOf(m), Live: m.Live}
	if covers, ok := m.Covers[m.Task]; ok && m.Live == nil {
		e.Covers = &covers
	}
	if m.Epoch == 0 {
		e.Base = base
	}
	for _, r := range records {
		if r.Ends != nil && r.Branch == m.Branch && r.Covers[m.Task] == m.Epoch {
			e.GoesLive = &r.N
		}
	}
	return e
}

func writeGraph(w io.Writer, entries []graphEntry) error {
	t := newTable(text("graph"), text("epoch"), text("kind"), text("live"), number("position"), number("covers"), text("time"), number("records"), text("note"))
	for _, e := range entries {
		for _, join := range e.joins {
			t.row(join, "", "", "", "", "", "", "", "")
		}
		live := ""
		if e.Live != nil {
			live = fmt.Sprintf("generation %d", *e.Live)
		}
		t.row(e.line, fmt.Sprintf("%s:%d", e.Branch, e.Epoch), string(e.Kind), live, count(e.Position), optional(e.Covers), moment(e.micros), count(e.Records), e.note())
	}
	return t.write(w)
}

func (e graphEntry) note() string {
	var notes []string
	if e.Base != nil {
		notes = append(notes, "starts from "+e.Base.String())
	}
	if e.GoesLive != nil {
		notes = append(notes, fmt.Sprintf("goes live as generation %d", *e.GoesLive))
	}
	if e.Kind == epoch.Seal {
		notes = append(notes, "by "+orNobody(e.By))
	}
	return strings.Join(notes, ", ")
}
