package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/clean"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade"
)

// goingBack is how a job could go back to what was live before.
type goingBack struct {
	Branch   string         `json:"branch"`
	Epoch    epoch.Epoch    `json:"epoch"` // its last
	Position epoch.Position `json:"position"`
	Build    *epoch.Build   `json:"build,omitempty"` // that ran there
	// Possible says that the last epoch is kept, and that no input since is known to be
	// gone from the sources.
	Possible bool `json:"possible"`
	// Lost says that such inputs are.
	Lost bool `json:"lost,omitzero"`
	// Timetable says that all epochs since are kept; a rollback then reads the inputs
	// as they were read, and by its own clock otherwise.
	Timetable bool `json:"timetable"`
	// TimetableUntil is when clean-up may begin with these epochs, and TimetableEpochs
	// how many have to come besides; empty: there is none yet, or all are kept.
	TimetableUntil  string      `json:"timetable_until,omitempty"`
	TimetableEpochs epoch.Epoch `json:"timetable_epochs,omitzero"`
}

// addBranches tells of the branches that were not cleaned away, if there are several.
func (s *status) addBranches(ctx context.Context, job *epoch.Job, now time.Time) error {
	bs, err := lookAtBranches(ctx, job)
	if err != nil {
		return err
	}
	bs.All = slices.DeleteFunc(bs.All, func(b upgrade.Branch) bool {
		return b.Gone && b.Standing != upgrade.Live && b.Standing != upgrade.Sealed
	})
	if len(bs.All) < 2 {
		return nil
	}
	s.Branches = listBranches(bs, now)
	live, _ := bs.LiveBranch()
	g, ok, err := upgrade.GoBack(ctx, job, bs, retentionOf(live.Beat))
	if err != nil {
		return err
	}
	if s.Needs = needsOf(bs, g, live.Beat); !ok {
		return nil
	}
	s.GoingBack = &goingBack{
		Branch: g.Branch, Epoch: g.Final.Epoch, Position: g.Final.Position,
		Possible: g.Kept, Timetable: g.Timetable, TimetableEpochs: g.Epochs,
	}
	if g.Kept {
		s.GoingBack.Build = &g.Build
	}
	s.GoingBack.Lost = slices.ContainsFunc(s.Needs, func(n neededInput) bool { return n.By == goingBackNeeds && n.Lost > 0 })
	s.GoingBack.Possible = g.Kept && !s.GoingBack.Lost
	if g.Until != 0 {
		s.GoingBack.TimetableUntil = stamp(g.Until)
	}
	return nil
}

// neededInput is a partition of which a branch has yet to read what may go, or is gone.
type neededInput struct {
	// By is the branch that follows, or going back.
	By        string `json:"by"`
	Source    string `json:"source"`
	Partition string `json:"partition"`
	// From is the offset from which it reads, First the oldest that there still is, and
	// Lost how much of that is gone.
	From  int64 `json:"from"`
	First int64 `json:"first"`
	Lost  int64 `json:"lost,omitzero"`
}

// goingBackNeeds is what going back is called beside branches.
const goingBackNeeds = "going back"

// needsOf are the inputs that going back and the followers need, of partitions that have
// lost some by the heartbeat of the live branch's owner.
func needsOf(bs upgrade.Branches, g upgrade.GoingBack, beat *epoch.Heartbeat) (all []neededInput) {
	if beat == nil {
		return nil
	}
	add := func(by string, sources map[string]epoch.SourceState) {
		for source, s := range sorted(sources) {
			for partition, at := range sorted(s.Partitions) {
				if first := beat.Sources[source][partition].Start; first > 0 {
					all = append(all, neededInput{by, source, partition, at.Next, first, max(0, first-at.Next)})
				}
			}
		}
	}
	add(goingBackNeeds, g.Sources)
	for _, b := range bs.All {
		if b.Standing == upgrade.Follows && b.Begun && !b.Gone {
			add("branch "+b.Name, b.Head.Manifest.Sources)
		}
	}
	return all
}

// needs are the inputs that are needed yet.
func (s status) needs(style styles) *table {
	t := newTable(text("needed by"), text("source"), text("partition"), number("from offset"), number("first left"), column{name: "gone", numbers: true, paint: func(_, padded string) string { return style.bad(padded) }})
	for _, n := range s.Needs {
		lost := ""
		if n.Lost > 0 {
			lost = count(n.Lost)
		}
		t.row(n.By, n.Source, n.Partition, count(n.From), count(n.First), lost)
	}
	return t
}

// retentionOf is what an owner keeps, by its heartbeat, or what is kept if nothing else
// is said.
func retentionOf(beat *epoch.Heartbeat) epoch.Retention {
	r := epoch.Retention{Micros: clean.DefaultKeep.Microseconds(), Epochs: clean.DefaultKeepEpochs}
	switch {
	case beat == nil || beat.KeepEpochs == 0:
	case beat.KeepEpochs < 0:
		r.Epochs = 0 // it cleans up nothing
	default:
		r.Micros, r.Epochs = max(beat.Keep, 0), epoch.Epoch(beat.KeepEpochs)
	}
	return r
}

// branches are drawn below those that they start from.
func (s status) branches() *table {
	t := newTable(text("branch"), text("state"), text("base"), number("epoch"), number("position"), number("behind"), number("records/s"), text("owner"))
	for _, b := range s.Branches {
		rate := ""
		if b.RecordsPerSecond > 0 {
			rate = count(b.RecordsPerSecond)
		}
		t.row(b.tree(), b.stands(), b.Base.String(), optional(b.Epoch), optional(b.Position), optional(b.Behind), rate, b.owner())
	}
	return t
}

// sideBySide are the live branch and those that follow it.
func (s status) sideBySide() []listedBranch {
	return slices.DeleteFunc(slices.Clone(s.Branches), func(b listedBranch) bool {
		return b.Epoch == nil || b.Branch != s.Branch && b.State != upgrade.Follows
	})
}

// offsets are the next offsets of each, side by side; nothing without a follower.
func (s status) offsets() *table {
	shown := s.sideBySide()
	columns := []column{text("next offsets of"), text("partition")}
	type key struct{ source, partition string }
	var keys []key
	next := make([]map[key]string, len(shown))
	for i, b := range shown {
		columns = append(columns, column{name: b.Branch, numbers: true, asIs: true})
		next[i] = map[key]string{}
		for _, at := range b.Sources {
			k := key{at.Source, at.Partition}
			if next[i][k] = count(at.Next); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	t := newTable(columns...)
	if len(shown) < 2 {
		return t
	}
	for _, k := range keys {
		cells := []string{k.source, k.partition}
		for i := range shown {
			cells = append(cells, next[i][k])
		}
		t.row(cells...)
	}
	return t
}

// partialsOfOthers are the partial states of followers.
func (s status) partialsOfOthers(style styles) *table {
	t := newTable(text("branch"), text("partial state"), column{name: "until", paint: func(_, padded string) string { return style.warn(padded) }}, text("why"))
	for _, b := range s.sideBySide() {
		if b.Branch == s.Branch {
			continue
		}
		for _, p := range b.Partial {
			t.row(b.Branch, p.State, p.until(), p.Why)
		}
	}
	return t
}

// objections are what keeps followers that are to go live from that.
func (s status) objections(style styles) *table {
	t := newTable(text("branch"), column{name: "does not go live", paint: func(_, padded string) string { return style.warn(padded) }})
	for _, b := range s.Branches {
		for _, why := range b.Objections {
			t.row(b.Branch, why)
		}
	}
	return t
}

func (g *goingBack) write(w io.Writer) error {
	if g == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\ngoing back  %s\n", printable(g.String()))
	return err
}

// String says how the job could go back, and until when.
func (g *goingBack) String() string {
	where := fmt.Sprintf("to branch %s, epoch %d, position %d", g.Branch, g.Epoch, g.Position)
	switch {
	case g.Lost:
		return where + ": no more, since inputs that it would have to read are gone; `run --replace` lets that build go on with the newer one's state"
	case !g.Possible:
		return where + ": no more, since that epoch is gone"
	case !g.Timetable:
		return where + ": possible as long as the sources keep the inputs since; they are read by the branch's own clock (--own-clock), since not all epochs since are kept"
	case g.TimetableUntil == "":
		return where + ": possible as long as the sources keep the inputs since"
	}
	return fmt.Sprintf("%s: possible as long as the sources keep the inputs since; until %s at least, and until %s have come, in the order and at the times at which they were read, then by the branch's own clock (--own-clock)",
		where, strings.Replace(g.TimetableUntil, "T", " ", 1), several(int64(g.TimetableEpochs), "epoch"))
}
