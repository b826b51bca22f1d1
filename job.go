package sluice

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Job is a named pipeline of sources, operators with state, and sinks. Put it
// together with its methods and those of what they return, then run it: with
// [Main], which gives it a command line, or with [Job.Run].
type Job struct {
	name   string
	graph  *engine.Graph
	claims map[string]claim // sources and states, by their names
	sinks  map[string]claim // sinks, by their names
	dead   bool
	ends   []func() // checks to be made once all has been put together
	faults []string
	built  bool
}

// NewJob begins a job. The name is its name in the checkpoint store for good.
func NewJob(name string) *Job {
	job := &Job{name: name, graph: engine.NewGraph(), claims: map[string]claim{}, sinks: map[string]claim{}}
	if err := epoch.CheckName("job", name); err != nil {
		job.fault("%v", err)
	}
	return job
}

// Name is the job's name.
func (job *Job) Name() string { return job.name }

// From adds a source. Its name is what the offsets are kept under.
func (job *Job) From[T any](name string, source connector.Source[T]) *Stream[T] {
	job.claim("source", name, nil)
	return streamAt(job, engine.AddSource(job.graph, name, source), []string{name})
}

// DeadLetter is a record that could not be processed, for the sink of
// [Job.DeadLetter].
type DeadLetter struct {
	// Source, Partition and Offset are where the record stands.
	Source    string
	Partition string
	Offset    int64
	// Operator is the step that failed: the source if the record could not be
	// decoded. Key is the record's key there, in words, if it had one.
	Operator string
	Key      string
	// Error is what went wrong.
	Error string
	// RecordKey is the record's own key as it was read, such as Kafka's; empty where
	// the source has none. Bytes is its value.
	RecordKey []byte
	Bytes     []byte
}

// DeadLetter sends records that can't be decoded, or on which a function
// panics or returns an error, to a sink of their own instead of stopping the
// job. Nothing that such a record has done elsewhere stays. An entry of a table
// whose change can't be processed is no record: it stops the job all the same.
func (job *Job) DeadLetter(name string, sink connector.StreamSink[DeadLetter]) {
	job.claim("sink", name, job.sources())
	if job.dead {
		job.fault("two sinks for dead letters")
		return
	}
	job.dead = true
	job.refuseRivals(name, sink)
	node := new(engine.Node[DeadLetter])
	engine.Through(job.graph.DeadLetters(), node, func(_ *engine.Instance, next func(*DeadLetter)) func(*engine.DeadLetter) {
		var d DeadLetter
		return func(v *engine.DeadLetter) {
			d = DeadLetter(*v)
			next(&d)
		}
	})
	if err := engine.AddStreamSink(job.graph, node, name, sink); err != nil {
		job.fault("sink %q: %v", name, err)
	}
}

// Check tells what is wrong with the job as it was put together: one error with
// every fault, each with the places in the program that it comes from. It is
// nil if the job can run.
func (job *Job) Check() error {
	if !job.built {
		job.built = true
		for _, check := range job.ends {
			check()
		}
		if len(job.graph.Sources()) == 0 {
			job.faults = append(job.faults, "the job has no source: add one with From")
		}
		if len(job.faults) == 0 {
			if err := job.graph.Build(); err != nil {
				job.faults = append(job.faults, err.Error())
			}
		}
	}
	if len(job.faults) == 0 {
		return nil
	}
	return &FaultsError{Job: job.name, Faults: slices.Clone(job.faults)}
}

// FaultsError says what is wrong with a job as it was put together.
type FaultsError struct {
	// Job is the job's name.
	Job string
	// Faults has one text for each fault.
	Faults []string
}

// Error implements error.
func (e *FaultsError) Error() string {
	return fmt.Sprintf("%s: the job can't be built: %s. Mend these places of the program and build it again.", e.Job, strings.Join(e.Faults, "; "))
}

// Summary is what the error says without the faults, and Details are these: for
// those who show them as a list.
func (e *FaultsError) Summary() string {
	return e.Job + ": the job can't be built; mend these places of the program and build it again:"
}

// Details has one text for each fault.
func (e *FaultsError) Details() []string { return e.Faults }

// claim is what has a name in a job: a source, a state or a sink, with the named
// parts that its records come from.
type claim struct {
	kind string
	from []string
}

// claim takes a name for a part of the job.
func (job *Job) claim(kind, name string, from []string) {
	if err := epoch.CheckName(kind, name); err != nil {
		job.fault("%v", err)
	}
	claims := job.claims
	if kind == "sink" {
		claims = job.sinks // nothing comes after a sink, so nothing can confuse it with a state
	}
	if had, ok := claims[name]; ok {
		job.fault("%s %q: the name is taken by a %s", kind, name, had.kind)
		return
	}
	claims[name] = claim{kind, from}
}

// refuseRivals notes those of the job's sinks that can't stand beside a new one.
func (job *Job) refuseRivals(name string, sink connector.Sink) {
	for _, other := range job.graph.Sinks() {
		if rival, ok := other.Sink.(connector.RivalSink); ok {
			if err := rival.Rivals(sink); err != nil {
				job.fault("sinks %q and %q: %v", other.Name, name, err)
			}
		}
	}
}

// sources are the names of the job's sources.
func (job *Job) sources() []string {
	var names []string
	for _, s := range job.graph.Sources() {
		names = append(names, s.Name)
	}
	return names
}

// union returns the names in a and those of b that are not in a.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (job *Job) fault(format string, args ...any) {
	job.faultAt(callSite(), format, args...)
}

func (job *Job) faultAt(at site, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at != "" {
		text += " (" + string(at) + ")"
	}
	job.faults = append(job.faults, text)
}

// requireCopies notes a check that values which several consumers get can be
// copied.
func requireCopies[T any](job *Job, at site, node *engine.Node[T]) {
	job.ends = append(job.ends, func() {
		if !node.NeedsCopies() {
			return
		}
		if _, _, err := schema.Copier[T](); err != nil {
			job.faultAt(at, "a stream that goes to several places is copied: %v", err)
		}
	})
}

// site is where in the user's program something was called.
type site string

// library is the import path whose frames are not the user's.
const library = "github.com/sluicestream/sluice"

// callSite names the first two places outside the library on the way here.
func callSite() site {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var places []string
	for len(places) < 2 {
		frame, more := frames.Next()
		if frame.Function != "" && !inLibrary(frame.Function) && !strings.HasPrefix(frame.Function, "runtime.") {
			places = append(places, fmt.Sprintf("%s:%d", shortFile(frame.File), frame.Line))
		}
		if !more {
			break
		}
	}
	return site(strings.Join(places, ", called from "))
}

// inLibrary tells whether a function is one of the library's own packages that
// users call: the root, or a connector.
func inLibrary(function string) bool {
	rest, ok := strings.CutPrefix(function, library)
	if !ok {
		return false
	}
	return slices.ContainsFunc([]string{".", "/file.", "/kafka.", "/postgres.", "/sluicetest."}, func(own string) bool { return strings.HasPrefix(rest, own) })
}

// shortFile keeps a file's name and its folder's.
func shortFile(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		if j := strings.LastIndexByte(file[:i], '/'); j >= 0 {
			return file[j+1:]
		}
	}
	return file
}

// label names a step that has no name of its own, for errors.
func label(step string, f any) string {
	if name := connector.FunctionName(f); name != "" {
		return step + " " + name
	}
	return fmt.Sprintf("%s at %s", step, callSite())
}
