package sluice

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
	"github.com/sluicestream/sluice/schema"
)

// Window is a half-open span of time: Start belongs to it, End does not.
type Window = engine.Window

// In is a key in a window: the key of a window's state, whose bounds are stored with
// it.
type In[K comparable] = engine.In[K]

// Windows says which windows a time is in. It is immutable.
type Windows struct {
	d   *window.Definition
	err error
}

// Tumbling are windows of one size, side by side. They begin at multiples of the size
// since 1970 UTC; see [Windows.Offset].
func Tumbling(size time.Duration) Windows { return windowsOf(window.Tumbling(size, 0)) }

// Hopping are windows of one size of which one begins every slide, so that a record is
// in several. A record that is behind the first of these is late, and in none. Where
// the fold can be merged ([Windowed.FoldMerge]), windows share what is theirs together,
// and many cost about as much as one; otherwise each record is folded into each of its
// windows.
func Hopping(size, slide time.Duration) Windows { return windowsOf(window.Hopping(size, slide, 0)) }

// Sliding are windows that end with a record: for each time that a key has records at
// there is one, of the records at that time and less than size before it. They are
// folded once for each time, and put together for each window, so that the fold must be
// one that can be merged. A record is late if its own window has closed.
func Sliding(size time.Duration) Windows { return windowsOf(window.Sliding(size)) }

// Session are windows that hold a key's records as long as less than gap lies between
// two of them: a window ends a gap behind its last record. Sessions can become one by a
// record between them, so that their fold must be one that can be merged. A record is
// late once the watermark has come a gap further than its time, or if it would have been
// in a session that is closed.
func Session(gap time.Duration) Windows { return windowsOf(window.Session(gap)) }

// Days are windows of n days each in a time zone, by its name in the IANA database. On
// most days these have 24 hours; they have 23 or 25 where clocks are changed.
func Days(n int, zone string) Windows {
	return windowsOf(window.Calendar(int64(n), window.Day, zone, 0))
}

// Weeks are windows of n weeks each, from Monday, in a time zone.
func Weeks(n int, zone string) Windows {
	return windowsOf(window.Calendar(int64(n), window.Week, zone, 0))
}

// Months are windows of n months each in a time zone.
func Months(n int, zone string) Windows {
	return windowsOf(window.Calendar(int64(n), window.Month, zone, 0))
}

// WindowsBy are the windows that a function gives for a time, each of which must hold
// it. The name is what tells the function from another; it must be pure.
func WindowsBy(name string, of func(Instant) iter.Seq[Window]) Windows {
	return windowsOf(window.Custom(name, func(t int64) iter.Seq[window.Span] {
		return func(yield func(window.Span) bool) {
			for w := range of(Instant(t)) {
				if !yield(window.Span{Start: int64(w.Start), End: int64(w.End)}) {
					return
				}
			}
		}
	}))
}

func windowsOf(d *window.Definition, err error) Windows { return Windows{d, err} }

// Offset moves the windows: of tumbling and hopping ones by so much behind the
// multiples that they begin at, of days, weeks and months by so much on the clock of
// their zone. Others have no offset.
func (w Windows) Offset(offset time.Duration) Windows {
	if w.err != nil || w.d == nil {
		return w
	}
	size, clock := time.Duration(w.d.Size)*time.Microsecond, w.d.Clock
	switch w.d.Kind {
	case window.TumblingKind:
		w = windowsOf(window.Tumbling(size, offset))
	case window.HoppingKind:
		w = windowsOf(window.Hopping(size, time.Duration(w.d.Slide)*time.Microsecond, offset))
	case window.CalendarKind:
		w = windowsOf(window.Calendar(w.d.Count, w.d.Unit, w.d.Zone, offset))
	default:
		return Windows{err: fmt.Errorf("%s windows have no offset", w.d.Kind)}
	}
	if w.err == nil {
		w.d = w.d.On(clock)
	}
	return w
}

// OnClock has the windows go by the clock of the epoch that a record is read in, and not
// by the record's time: no record is late then. A window's result comes with the first
// epoch that begins behind its end.
func (w Windows) OnClock() Windows {
	if w.err == nil && w.d != nil {
		w.d = w.d.On(window.ProcessingTime)
	}
	return w
}

// WindowOption is a setting of [Keyed.Window].
type WindowOption func(*windowOptions)

type windowOptions struct {
	allowed time.Duration
	ahead   bool
}

// AllowedLateness has windows wait behind their end: until the watermark is so much
// further, records still come into them. Defaults to 0.
func AllowedLateness(d time.Duration) WindowOption {
	return func(o *windowOptions) { o.allowed = d }
}

// MergeAhead has records folded before they are sent to the shard that has their key: of
// each batch a value for each key and window is sent, and merged there. A key that many
// records have does not make one shard do most of the work then. Where few records of a
// batch have a key in common it costs more than it saves.
//
// It takes [Windowed.FoldMerge], of a fold that comes to the same however records are
// divided, and in whatever order the parts are merged: integers that are added up, the
// largest, a set. A sum of floats may differ in its last digits, also in a replay. Of
// sessions and sliding windows only records of one time are merged. Records that are late
// are counted; there is no stream of them.
//
// The state is the same with it and without.
func MergeAhead() WindowOption { return func(o *windowOptions) { o.ahead = true } }

// Windowed is a keyed stream whose records stand in windows, to be folded there.
type Windowed[K comparable, T any] struct {
	keyed   *Keyed[K, T]
	windows Windows
	windowOptions
	late   *engine.Node[T]
	at     site
	bad    bool
	folded bool
}

// Window puts the records into windows, by their event time.
func (k *Keyed[K, T]) Window(windows Windows, opts ...WindowOption) *Windowed[K, T] {
	w := &Windowed[K, T]{keyed: k, windows: windows, late: new(engine.Node[T]), at: callSite(), bad: k.bad}
	for _, opt := range opts {
		opt(&w.windowOptions)
	}
	fault := func(format string, args ...any) {
		w.bad = true
		k.job.faultAt(w.at, format, args...)
	}
	switch {
	case windows.d == nil && windows.err == nil:
		fault("Window without windows; Tumbling and others make them")
	case windows.err != nil:
		fault("Window: %v", windows.err)
	case w.allowed < 0:
		fault("Window: an AllowedLateness of %s, expected at least 0", w.allowed)
	case windows.d.Clock == window.ProcessingTime && w.allowed > 0:
		fault("Window: AllowedLateness of windows that go by the clock, which nothing is late for")
	case w.ahead && !k.bad && !k.keyed.Direct():
		fault("Window: MergeAhead behind MapValues, while records are merged before the KeyBy sends them: use Map before the KeyBy instead")
	case windows.d.Clock == window.EventTime:
		w.bad = k.faultIfUntimed(w.at, "Window") || w.bad
	}
	k.job.ends = append(k.job.ends, func() {
		if !w.folded {
			k.job.faultAt(w.at, "Window without a Fold")
		}
	})
	return w
}

// Late is the stream of records that came too late: nothing is put out for them
// otherwise. Records without a time are among them. Without it they are dropped, and
// counted.
func (w *Windowed[K, T]) Late() *Stream[T] {
	if w.ahead {
		w.keyed.job.faultAt(w.at, "Late of a Window with MergeAhead, which merges records before it is known whether they are late, and only counts these: leave out one of the two")
	}
	s := streamAt(w.keyed.job, w.late, w.keyed.from)
	if !w.bad {
		s.times, s.mixed = w.keyed.keyed.Stage.Times(), w.keyed.mixed
	}
	return s
}

// WindowTable is a state of one value per key and window, of the windows that may still
// change: as a table, whose rows and changes come with each epoch, and as a stream of
// results. A window leaves the state when nothing can change it any more, and a sink
// keeps its last row. Where windows share panes ([Windowed.FoldMerge]) there are results
// only: To, Changes and Regroup are faults.
type WindowTable[K comparable, S any] struct {
	*Table[In[K], S]
	results *engine.Node[engine.Result[K, S]]
	firings *engine.Firings[K, S]
	times   []*engine.EventTime
}

// Result is what a window has come to.
type Result[K comparable, S any] struct {
	Key    K
	Window Window
	Value  S
}

// Fold folds each record into the values of its key's windows that it is in: fold
// changes a value in place, which is zero for a new window.
func (w *Windowed[K, T]) Fold[S any](state State[In[K], S], fold func(*S, T)) *WindowTable[K, S] {
	return w.fold(state, fold, nil, connector.FunctionName(fold))
}

// FoldMerge is [Windowed.Fold] with a function that makes one value of two: into is that
// of the earlier records, and the other one is not used any more.
//
// Hopping and sliding windows share what is theirs together then. A record is folded
// into one pane, a piece of time between two edges of windows, and a window is put
// together of its panes when it closes. They are merged in the order of their times, in
// pairs that depend on nothing but these times: a sum of floats is the same in each
// replay. The state's entries are panes, and not windows, so that it can't be shown as a
// table.
func (w *Windowed[K, T]) FoldMerge[S any](state State[In[K], S], fold func(*S, T), merge func(into, other *S)) *WindowTable[K, S] {
	return w.fold(state, fold, merge, connector.FunctionName(fold))
}

func (w *Windowed[K, T]) fold[S any](state State[In[K], S], fold func(*S, T), merge func(into, other *S), function string) *WindowTable[K, S] {
	job, k := w.keyed.job, w.keyed
	if w.folded {
		job.faultAt(w.at, "a second Fold of one Window; call Window again")
	}
	w.folded = true
	out := &WindowTable[K, S]{Table: &Table[In[K], S]{job: job, name: state.d.name}, results: new(engine.Node[engine.Result[K, S]]), firings: &engine.Firings[K, S]{Node: new(engine.Node[engine.Firing[K, S]])}}
	job.claim("state", state.d.name, k.from)
	if w.bad {
		if !k.bad {
			k.keyed.Node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
		}
		return out
	}
	session := w.windows.d.Kind == window.SessionKind
	if session && merge == nil {
		job.faultAt(w.at, "state %q: sessions can become one, and so must their values: use FoldMerge", state.d.name)
	}
	sliding := w.windows.d.Kind == window.SlidingKind
	if sliding && merge == nil {
		job.faultAt(w.at, "state %q: sliding windows are put together of what they share: use FoldMerge", state.d.name)
	}
	if w.ahead && merge == nil {
		job.faultAt(w.at, "state %q: MergeAhead merges what parts of the records were folded to: use FoldMerge", state.d.name)
	}
	value, err := schema.Of[S](state.d.name)
	if err != nil {
		job.fault("state %q: %v", state.d.name, err)
		k.keyed.Node.Consume(func(*engine.Instance) func(*T) { return func(*T) {} })
		return out
	}
	untyped := state.d.specOf("window", owner{state.d.name, epoch.WindowKind, function, k.from})
	untyped.Parameters = w.windows.d.Parameters()
	if w.allowed > 0 {
		untyped.Parameters[epoch.AllowedLateness] = w.allowed.String()
	}
	shared := merge != nil && (sliding || w.windows.d.Kind == window.HoppingKind && w.windows.d.Slide < w.windows.d.Size)
	if shared {
		untyped.Parameters[epoch.SharedPanes] = "shared" // what is stored is something else
	}
	if w.windows.d.Clock == window.EventTime {
		untyped.Times = k.keyed.Stage.Times()
	}
	spec, err := engine.AddWindowState(job.graph, k.keyed.Stage, untyped, value, state.carry, session)
	if err != nil {
		job.fault("state %q: %v", state.d.name, err)
		return out
	}
	spec.Panes = shared
	out.Table.spec, out.times = spec, k.keyed.Stage.Times()
	engine.AddWindows(job.graph, k.keyed, &engine.WindowSpec[K, S, T]{
		Table: spec, Windows: w.windows.d, Allowed: w.allowed.Microseconds(), Fold: fold, Merge: merge, Ahead: w.ahead,
		Results: out.results, Firings: out.firings, Late: w.late,
	})
	return out
}

// Results is the stream of what windows have come to: one for each window, once nothing
// can change it any more, which is when the watermark has reached its end and the
// allowed lateness is over. Those of a key come in the order of their ends. What they
// have come to before that is in the table's changes, and in [WindowTable.Firings].
func (t *WindowTable[K, S]) Results() *Stream[Result[K, S]] {
	out := newStream[Result[K, S]](t.job, []string{t.name})
	out.times = slices.Clone(t.times)
	engine.Through(t.results, out.node, func(_ *engine.Instance, next func(*Result[K, S])) func(*engine.Result[K, S]) {
		var r Result[K, S]
		return func(v *engine.Result[K, S]) {
			r = Result[K, S](*v)
			next(&r)
		}
	})
	return out
}

// Timing says when a window was put out; see [WindowTable.Firings].
type Timing = engine.Timing

// The timings, in the order in which a window has them.
const (
	Early  = engine.Early  // before its end
	OnTime = engine.OnTime // when the watermark has reached its end
	Late   = engine.Late   // behind that, because a late record has changed it
)

// Firing is what a window has come to so far.
type Firing[K comparable, S any] struct {
	Key    K
	Window Window
	Value  S
	Timing Timing
}

// Firings is the stream of windows on the way to what they come to, each with all that
// it has got so far, so that a later firing stands for the earlier ones: whenever the
// watermark passes a multiple of early since 1970 UTC, all windows that are open; at its
// end, each once; and behind it, as long as [AllowedLateness] lets records come in, those
// that a run of such records has changed, once that is read. With early 0 none comes
// before its end. Windows on the clock go by that instead of the watermark.
//
// A session that a record makes longer is put out again under its new bounds, and so is
// what several have become. Those of windows that share panes can't be had.
func (t *WindowTable[K, S]) Firings(early time.Duration) *Stream[Firing[K, S]] {
	out, at := newStream[Firing[K, S]](t.job, []string{t.name}), callSite()
	out.times = slices.Clone(t.times)
	switch {
	case early < 0 || early%time.Microsecond != 0:
		t.job.faultAt(at, "Firings: early each %s, expected whole microseconds, and at least 0", early)
	case t.firings.Node.Consumed():
		t.job.faultAt(at, "a second Firings of state %q; use the stream of the first twice", t.name)
	case t.Table.spec != nil && t.Table.spec.Panes:
		t.job.faultAt(at, "Firings of state %q, whose windows share panes; use Fold", t.name)
	}
	t.firings.Every = early.Microseconds()
	if t.Table.spec != nil {
		t.Table.spec.Parameters[epoch.Firings] = firingsText(early)
	}
	engine.Through(t.firings.Node, out.node, func(_ *engine.Instance, next func(*Firing[K, S])) func(*engine.Firing[K, S]) {
		var f Firing[K, S]
		return func(v *engine.Firing[K, S]) {
			f = Firing[K, S](*v)
			next(&f)
		}
	})
	return out
}

func firingsText(early time.Duration) string {
	if early == 0 {
		return "on time and late"
	}
	return "early each " + early.String() + ", on time and late"
}
