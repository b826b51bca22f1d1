package epoch

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicestream/sluice/store"
)

// DroppedSink is what is known of a sink that the live branch's build lacks.
type DroppedSink struct {
	// Span is where its rows stand, as far as is known; nil in systems without offsets.
	Span *Span
	// Pending is the number of positions that it may be owed still; 0: its last row is
	// there, and Span is final.
	Pending Position
	// Live is the generation that has dropped it, Ended the branch that this ended, whose
	// owner is to deliver the rest.
	Live  Generation
	Ended string
	// GivenUp says that a person has given up what it was owed.
	GivenUp bool
}

// DroppedSink tells how a sink has ended that a live branch's newest manifest says is
// dropped. Its rest is delivered by a process of the generation before, which no
// manifest tells: that notes it in a record of its own.
func (j *Job) DroppedSink(ctx context.Context, head Manifest, sink string) (DroppedSink, error) {
	s := head.Sinks[sink]
	ended := DroppedSink{Span: s.Span}
	records, err := j.LiveRecords(ctx, nil)
	if err != nil {
		return ended, err
	}
	for _, r := range slices.Backward(records) {
		said := r.Sinks[sink].Dropped
		if said == "" || r.Ends == nil {
			continue
		}
		ended.Live, ended.Ended = r.N, r.Ends.Branch
		end := r.Ends.Tasks[head.Task].Position
		if s.Confirmed >= end {
			return ended, nil
		}
		ended.GivenUp = said == Consented
		drained, err := j.drain(ctx, r.N, head.Task, sink)
		switch {
		case errors.Is(err, store.ErrNotFound):
			ended.Pending = end - s.Confirmed
			return ended, nil
		case err == nil && drained.Span != nil:
			ended.Span = drained.Span
		}
		return ended, err
	}
	return ended, nil // it was dropped in place, with nothing pending
}

// drain reads that a dropped sink has got the rest; the error matches
// [store.ErrNotFound] if nobody has noted it.
func (j *Job) drain(ctx context.Context, n Generation, task, sink string) (Drain, error) {
	d, _, err := read[Drain](ctx, j, At{}, DrainedPath(n, task, sink))
	return d, err
}

// PutDrained notes that the outboxes of a sink that generation n dropped have all been
// delivered, and where its rows stand.
func (j *Job) PutDrained(ctx context.Context, n Generation, task, sink string, span *Span) error {
	r := Drain{Format: Format, JobID: j.file.JobID, Live: n, Task: task, Sink: sink, Span: span, Time: j.now()}
	return j.makeRecord(ctx, DrainedPath(n, task, sink), r.encode)
}

// Drained tells whether the outboxes of a sink that generation n dropped have
// all been delivered.
func (j *Job) Drained(ctx context.Context, n Generation, task, sink string) (bool, error) {
	return j.store.Exists(ctx, j.Object(DrainedPath(n, task, sink)))
}
