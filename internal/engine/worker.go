package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluicestream/sluice/connector"
)

// job is a batch for a worker.
type job struct {
	head  *batch
	input *connector.Batch
}

// worker decodes batches and does what comes before the first KeyBy.
type worker struct {
	run   *Run
	in    *Instance
	feeds []func(b *connector.Batch, i int) error
	dead  func(*DeadLetter)
}

func newWorker(r *Run) *worker {
	w := &worker{run: r, in: &Instance{run: r, parts: map[part]any{}}}
	for _, s := range r.graph.sources {
		w.feeds = append(w.feeds, s.feeder(w.in))
	}
	w.dead = r.graph.dead.instantiate(w.in)
	return w
}

func (w *worker) loop() error {
	for {
		select {
		case j := <-w.run.work:
			if err := w.process(j); err != nil {
				return err
			}
		case <-w.run.quit:
			return nil
		}
	}
}

func (w *worker) process(j job) error {
	w.in.batch = j.head
	skip := w.run.skips(j.head)
	for i := 0; ; {
		failed, err := w.feed(j, i, skip)
		if err == nil {
			break
		}
		if errors.Is(err, connector.ErrUnavailable) {
			return &SourceError{w.run.graph.sources[j.head.source].name, j.head.partition, err}
		}
		if w.in.folding != nil { // others were folded to one value with a part of it
			return err
		}
		if err := w.reject(j, failed, err); err != nil {
			return err
		}
		i = failed + 1
	}
	var bytes int64
	for i := range j.input.Records {
		bytes += int64(len(j.input.Records[i].Value))
	}
	e := j.head.epoch
	e.Records.Add(int64(len(j.input.Records)))
	e.Bytes.Add(bytes)
	w.in.flush(j.head)
	w.run.batches.put(j.input)
	e.finish()
	return nil
}

// feed takes the records from number from on to the batch's end, and returns the number
// of the first that fails, with the cause.
func (w *worker) feed(j job, from int, skip map[int64]*RecordError) (i int, err error) {
	defer func() {
		if p := recover(); p != nil {
			cause := &PanicError{Value: fmt.Sprint(p), Stack: string(debug.Stack())}
			if w.in.folding != nil {
				err = w.in.describeFolding(cause)
			} else {
				err = w.failure(j, i, "", cause)
			}
		}
	}()
	in, feed := w.in, w.feeds[j.head.source]
	for i = from; i < len(j.input.Records); i++ {
		in.base, in.emitted = Place{Hi: uint64(i) << recordShift}, 0
		in.recordTime = j.input.Records[i].Time
		if skip != nil {
			if known := skip[j.input.Records[i].Offset]; known != nil {
				return i, known
			}
		}
		if err := feed(j.input, i); err != nil {
			return i, w.failure(j, i, w.run.graph.sources[j.head.source].name, err)
		}
		if in.failed != nil {
			return i, w.failure(j, i, in.blame, in.failed)
		}
	}
	in.settle()
	return i, nil
}

func (w *worker) failure(j job, i int, operator string, cause error) error {
	source := w.run.graph.sources[j.head.source].name
	if operator == "" {
		operator = source
	}
	return &RecordError{Source: source, Partition: j.head.partition, Offset: j.input.Records[i].Offset, Operator: operator, Cause: cause}
}

// reject takes back what record i has put out so far, and puts it out as a dead
// letter; if the job has no place for these, it returns the cause.
func (w *worker) reject(j job, i int, cause error) error {
	var failed *RecordError
	if !w.run.o.DeadLetters || !errors.As(cause, &failed) {
		return cause
	}
	in := w.in
	in.failed, in.blame = nil, ""
	in.dropRecord(uint64(i))
	in.base, in.emitted = Place{Hi: uint64(i) << recordShift}, 0
	w.dead(&DeadLetter{
		Source: failed.Source, Partition: failed.Partition, Offset: failed.Offset,
		Operator: failed.Operator, Key: failed.Key, Error: failed.Cause.Error(), RecordKey: j.input.Records[i].Key, Bytes: j.input.Records[i].Value,
	})
	if in.failed != nil {
		again := *failed
		again.Operator, again.Cause = in.blame, fmt.Errorf("the dead letter for this record can't be written: %w (the record itself: %w)", in.failed, failed.Cause)
		return &again
	}
	j.head.epoch.DeadLetters.Add(1)
	return nil
}

// skips returns the records of a batch's partition that are known to fail.
func (r *Run) skips(b *batch) map[int64]*RecordError {
	if len(r.o.Skip) == 0 {
		return nil
	}
	name := r.graph.sources[b.source].name
	out := map[int64]*RecordError{}
	for id, err := range r.o.Skip {
		if id.Source == name && id.Partition == b.partition {
			out[id.Offset] = err
		}
	}
	return out
}
