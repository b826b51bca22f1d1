package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
)

const (
	// defaultSample is how many entries of a state are tried.
	defaultSample = 1000
	// mostFailures bounds how many entries that fail, or meet, are named.
	mostFailures = 20
	// mostLooks bounds how often trials start over because clean-up overtook them.
	mostLooks = 5
)

// TrialOptions are what trials need.
type TrialOptions struct {
	Env *env.Env
	Job *epoch.Job
	// Look reads the epoch whose state is tried, and says how each state of this
	// build comes from it. It is called again, for a newer one, if the epoch is
	// cleaned away meanwhile.
	Look func(ctx context.Context) (epoch.Manifest, map[string]*carry.Way, error)
	// Sample is how many entries of each state are tried. Defaults to 1,000. A state
	// that has no more is tried whole.
	Sample int
	// All tries all entries.
	All bool
	// Workers is how many goroutines try. Defaults to one for each processor.
	Workers int
}

// Try tries on stored entries what would become of them, and changes nothing: each
// is read and goes through the functions and rules of its state's way. A sample is
// the same each time: it lies evenly over the slots, and has the largest values
// and the entries that have not changed for the longest time in it. The trials
// are by the names of this build's states; those of which nothing is stored, or
// that can't be carried over at all, have none.
//
// It relies on the check sums of the segments' blocks, of which it reads as few as
// it needs; one that is missing or damaged gives a *[epoch.DamagedError].
func Try(ctx context.Context, o TrialOptions) (map[string]*Trial, error) {
	o.Sample = cmp.Or(max(0, o.Sample), defaultSample)
	o.Workers = cmp.Or(max(0, o.Workers), runtime.GOMAXPROCS(0))
	for look := 1; ; look++ {
		head, ways, err := o.Look(ctx)
		if err != nil {
			return nil, err
		}
		trials, err := o.try(ctx, head, ways)
		if err == nil {
			return trials, nil
		}
		err = o.Job.Missed(ctx, head, err)
		if cleaned := (*epoch.CleanedError)(nil); !errors.As(err, &cleaned) || look == mostLooks {
			return nil, err
		}
	}
}

func (o *TrialOptions) try(ctx context.Context, head epoch.Manifest, ways map[string]*carry.Way) (map[string]*Trial, error) {
	trials := map[string]*Trial{}
	for name, way := range sorted(ways) {
		if way.Verdict == carry.Refused || way.Verdict == carry.Empty || len(way.Sources) == 0 {
			continue
		}
		trial, err := o.tryState(ctx, head, way)
		if err != nil {
			return nil, err
		}
		trials[name] = trial
	}
	return trials, nil
}

// tryState tries a state's way.
func (o *TrialOptions) tryState(ctx context.Context, head epoch.Manifest, way *carry.Way) (*Trial, error) {
	trial := &Trial{All: o.All}
	var met *meeting
	sample := max(1, o.Sample/len(way.Sources))
	if o.All || tryWhole(head, way, int64(sample)) {
		met = newMeeting(way)
	}
	for i, source := range way.Sources {
		segments := head.State[source.Stored.Name].Segments
		seeker, err := state.OpenSeeker(ctx, o.Job.Store(), o.Job.Name(), source.Stored.Form, segments)
		if err != nil {
			return nil, err
		}
		t := &sourceTrial{o: o, segments: len(segments), seeker: seeker}
		for _, s := range segments {
			t.rows += s.Rows
		}
		for range o.Workers {
			t.tasters = append(t.tasters, newTaster(o.Env.Clock, way, i, seeker.Reader(), met))
		}
		if o.All || t.rows <= int64(sample) {
			err = t.all(ctx)
		} else {
			err = t.sample(ctx, sample)
		}
		if err == nil && way.Rewrites() {
			err = t.estimate(ctx)
		}
		seeker.Close()
		if err != nil {
			return nil, err
		}
		t.addTo(trial)
	}
	if met != nil {
		met.addTo(trial)
	} else {
		trial.MeetUnknown = mayMeet(way)
	}
	return trial, nil
}

// tryWhole tells whether a sample of so many entries of each stored state is all of
// them, so that it is seen which meet.
func tryWhole(head epoch.Manifest, way *carry.Way, sample int64) bool {
	return !slices.ContainsFunc(way.Sources, func(source carry.Source) bool {
		var rows int64
		for _, s := range head.State[source.Stored.Name].Segments {
			rows += s.Rows
		}
		return rows > sample
	})
}

// addTo adds the trial of one stored state to that of the state that is made of it.
func (t *sourceTrial) addTo(trial *Trial) {
	entries := t.rows
	if t.whole {
		entries = t.sum.tried
	}
	trial.Entries += entries
	trial.Tried += t.sum.tried
	trial.Failed += t.sum.failed
	trial.Dropped += t.sum.dropped
	trial.Before += t.sum.before
	trial.After += t.sum.after
	trial.Seconds += t.takes.Seconds()
	trial.Failures = append(trial.Failures, t.sum.failures...)
	trial.Failures = trial.Failures[:min(mostFailures, len(trial.Failures))]
}

// Growth is how many times as large the entries become that were tried; 1 if
// nothing was.
func (t *Trial) Growth() float64 {
	if t.Before == 0 {
		return 1
	}
	return float64(t.After) / float64(t.Before)
}

// Attach gives a plan's lines what came of trying their states. An entry that
// can't be carried over makes the line refused, and is named, unless it is of a
// state whose failing entries are set aside. Entries that meet at a key without a
// function for that do so always.
func (p *Plan) Attach(trials map[string]*Trial, setAside map[string]error) {
	for name, t := range sorted(trials) {
		l := p.Line(StatePart, name)
		if l == nil {
			continue
		}
		l.Trial = t
		if t.Failed > 0 {
			inTheWay, aside := setAside[name]
			attachFailures(l, t, aside)
			if inTheWay != nil {
				l.Add(Refused, fmt.Sprintf("%s: entries can't be set aside: %v", name, inTheWay), "")
			}
			if aside {
				p.noteRowsStay(name)
			}
		}
		if t.Meet > 0 {
			l.Add(Refused, fmt.Sprintf("%s: %d entries come to keys that others have come to: %s", name, t.Meet, list(t.Meeting)),
				"say with Merge, or in MigrateKeys, how their values are put together")
		}
	}
}

// noteRowsStay notes at the table sinks of a state what becomes of the rows of
// entries that are set aside.
func (p *Plan) noteRowsStay(state string) {
	for _, sink := range p.tables[state] {
		if l := p.Line(SinkPart, sink); l != nil {
			l.Note("rows of entries of state " + state + " that are set aside stay")
		}
	}
}

func attachFailures(l *Line, t *Trial, aside bool) {
	if aside {
		l.Note(fmt.Sprintf("%d of %d tried entries can't be carried over, and would be set aside", t.Failed, t.Tried))
		return
	}
	do := fmt.Sprintf("mend the migration, or let --set-aside %s=FILE put such entries into a file", l.Name)
	for _, f := range t.Failures {
		l.Add(Refused, fmt.Sprintf("%s, key %s: %s", l.Name, f.Key, f.Why), do)
	}
	if more := t.Failed - int64(len(t.Failures)); more > 0 {
		l.Add(Refused, fmt.Sprintf("%s: %d more of the %d tried entries", l.Name, more, t.Tried), do)
	}
}
