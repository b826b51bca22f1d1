package epoch

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/store"
)

// RequestKind is what a request asks for.
type RequestKind string

// The requests. They decide nothing that the log decides.
const (
	// StopRequest asks all processes of the job that run or stand by to stop.
	StopRequest RequestKind = "stop"
	// DrainRequest asks the same, once all input of the moment has been read.
	DrainRequest RequestKind = "drain"
	// ForgetRequest asks the live branch's owner, of the moment or the next, to
	// delete entries of its state.
	ForgetRequest RequestKind = "forget"
	// GiveUpRequest takes a request to forget back that waits for an owner: a build that
	// would move the entries elsewhere may run. It was not done, and is told to be so.
	GiveUpRequest RequestKind = "give up"
	// UnreadableRequest stands for one that is damaged, or a later release's; By
	// says what is the matter. Nobody makes it.
	UnreadableRequest RequestKind = "unreadable"
)

// Request is what somebody asks of the processes that run a job. To stop are
// asked those that were started before it, which see it with their heartbeat. To
// forget is the next owner's as well, until a manifest says that it is done.
type Request struct {
	Format int         `json:"format"`
	JobID  string      `json:"job_id"`
	N      uint64      `json:"n"` // from 1
	Kind   RequestKind `json:"kind"`
	By     string      `json:"by"`
	Time   int64       `json:"time"` // microseconds since 1970 UTC
	// Edits are the entries to be deleted; a request to forget alone has them.
	Edits []Edit `json:"edits,omitempty"`
	// Keys are the Avro schemas of their states' keys, as they were when it was asked:
	// a state that has other keys by now has none of these entries under that hash.
	Keys map[string]string `json:"keys,omitempty"`
	// Version is the one of the epoch in which the keys were looked up: whether its
	// states' keys are those of a later version is seen by its description.
	Version string `json:"version,omitempty"`
	// Of is the request that is given up; 0 in all others.
	Of uint64 `json:"of,omitzero"`
}

func (r Request) encode() ([]byte, error) { return encode(r) }

const (
	// maxAsks bounds how often the next number is tried: each time somebody else
	// has asked for something in the same moment.
	maxAsks = 100
	// requestsAtOnce bounds the requests that are read at once.
	requestsAtOnce = 100
)

// Ask makes a request to stop.
func (j *Job) Ask(ctx context.Context, kind RequestKind, by string) (Request, error) {
	return j.ask(ctx, Request{Kind: kind, By: by})
}

// AskForget makes a request to delete entries: 1 to [MaxEdits] of them. keys are the
// Avro schemas of their states' keys in a version of the job.
func (j *Job) AskForget(ctx context.Context, edits []Edit, keys map[string]string, version, by string) (Request, error) {
	if len(edits) == 0 || len(edits) > MaxEdits {
		return Request{}, fmt.Errorf("%s: a request to forget names 1 to %d entries, this one %d; ask more than once", j.name, MaxEdits, len(edits))
	}
	return j.ask(ctx, Request{Kind: ForgetRequest, By: by, Edits: edits, Keys: keys, Version: version})
}

// AskGiveUp makes a request that takes one to forget back.
func (j *Job) AskGiveUp(ctx context.Context, of uint64, by string) (Request, error) {
	return j.ask(ctx, Request{Kind: GiveUpRequest, By: by, Of: of})
}

func (j *Job) ask(ctx context.Context, r Request) (Request, error) {
	newest, err := j.NewestRequest(ctx, 0)
	if err != nil {
		return Request{}, err
	}
	r.Format, r.JobID, r.Time = Format, j.file.JobID, j.now()
	for range maxAsks {
		newest++
		r.N = newest
		data, err := r.encode()
		if err != nil {
			return r, fmt.Errorf("%s: the request can't be written: %w", j.name, err)
		}
		outcome, _, err := j.create(ctx, ControlPath(r.N), data)
		if err != nil || outcome == Mine {
			return r, err
		}
	}
	return r, fmt.Errorf("%s: the numbers of %d requests were taken one after the other: something asks in a loop; find it in %s, or try again", j.name, maxAsks, j.Object("control/"))
}

// NewestRequest is the number of the newest request; 0 if there is none. The
// search begins at a number that is known.
func (j *Job) NewestRequest(ctx context.Context, known uint64) (uint64, error) {
	search := SearchHead(max(1, Epoch(known)), 0)
	if err := j.search(ctx, search, func(n Epoch) string { return ControlPath(uint64(n)) }); err != nil {
		return 0, err
	}
	newest, ok := search.Head()
	if !ok {
		return 0, nil
	}
	return uint64(newest), nil
}

// Request reads a request; the error matches [store.ErrNotFound] if there is
// none.
func (j *Job) Request(ctx context.Context, n uint64) (Request, error) {
	r, _, err := read[Request](ctx, j, At{}, ControlPath(n))
	if err == nil && (r.N != n || r.JobID != j.file.JobID) {
		err = j.damaged(At{}, ControlPath(n), fmt.Sprintf("request %d of job %s", n, j.file.JobID), fmt.Sprintf("request %d of job %s", r.N, r.JobID))
	}
	return r, err
}

// RequestsAfter reads the requests behind one that is known, in their order, some
// at a time. One that can't be read is [UnreadableRequest]: it must not stand in
// the way of those behind it.
func (j *Job) RequestsAfter(ctx context.Context, known uint64) ([]Request, error) {
	var found []Request
	for n := known + 1; len(found) < requestsAtOnce; n++ {
		r, err := j.Request(ctx, n)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		var damaged *DamagedError
		var later *FormatError
		if errors.As(err, &damaged) || errors.As(err, &later) {
			r, err = Request{N: n, Kind: UnreadableRequest, By: err.Error()}, nil
		}
		if err != nil {
			return found, err
		}
		found = append(found, r)
	}
	return found, nil
}
