package epoch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// DrainToRequest asks the live branch's owner to read up to offsets and nothing behind
	// them, and to stop then, and all other processes to stop. It is done once all of that
	// input is; one that can't be is noted as not met.
	DrainToRequest RequestKind = "drain to"
	// ForgetRequest asks the live branch's owner, of the moment or the next, to
	// delete entries of its state.
	ForgetRequest RequestKind = "forget"
	// GiveUpRequest takes a request to forget back that waits for an owner: a build that
	// would move the entries elsewhere may run. It was not done, and is told to be so.
	GiveUpRequest RequestKind = "give up"
	// CutoverRequest asks whoever follows on a branch to cut over to it as soon as it
	// can. The live branch's owner has nothing to do for it.
	CutoverRequest RequestKind = "cutover"
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
	// To are the offsets up to which is to be read, by the partitions' names; in a request
	// to drain up to somewhere none stands for where the sources end.
	To map[string]int64 `json:"to,omitempty"`
	// CloseWindows has a job that is to drain up to somewhere close all windows there.
	CloseWindows bool `json:"close_windows,omitzero"`
	// Branch is the one to be cut over to; empty in all others.
	Branch string `json:"branch,omitempty"`
}

// States are the states whose entries a request to forget names, sorted.
func (r Request) States() []string {
	names := map[string]bool{}
	for _, e := range r.Edits {
		names[e.State] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (r Request) encode() ([]byte, error) { return encode(r) }

const (
	// maxAsks bounds how often the next number is tried: each time somebody else
	// has asked for something in the same moment.
	maxAsks = 100
	// requestsAtOnce bounds the requests that are read at once; the one with which
	// they name as many entries as one may is the last.
	requestsAtOnce = 100
)

// Ask makes a request to stop.
func (j *Job) Ask(ctx context.Context, kind RequestKind, by string) (Request, error) {
	return j.ask(ctx, Request{Kind: kind, By: by})
}

// Stops tells whether processes of the job are asked to stop.
func (k RequestKind) Stops() bool {
	return k == StopRequest || k == DrainRequest || k == DrainToRequest
}

// AskDrainTo makes a request to read up to offsets, by the partitions' names, or to where
// the sources end if there are none, and to stop.
func (j *Job) AskDrainTo(ctx context.Context, to map[string]int64, closeWindows bool, by string) (Request, error) {
	return j.ask(ctx, Request{Kind: DrainToRequest, By: by, To: to, CloseWindows: closeWindows})
}

// AskForget makes a request to delete entries: 1 to [MaxAsked] of them. keys are the
// Avro schemas of their states' keys in a version of the job.
func (j *Job) AskForget(ctx context.Context, edits []Edit, keys map[string]string, version, by string) (Request, error) {
	if len(edits) == 0 || len(edits) > MaxAsked {
		return Request{}, fmt.Errorf("%s: a request to forget names 1 to %d entries, this one %d; ask more than once", j.name, MaxAsked, len(edits))
	}
	return j.ask(ctx, Request{Kind: ForgetRequest, By: by, Edits: edits, Keys: keys, Version: version})
}

// AskGiveUp makes a request that takes one to forget back.
func (j *Job) AskGiveUp(ctx context.Context, of uint64, by string) (Request, error) {
	return j.ask(ctx, Request{Kind: GiveUpRequest, By: by, Of: of})
}

// AskCutover makes a request to cut over to a branch.
func (j *Job) AskCutover(ctx context.Context, branch, by string) (Request, error) {
	if err := CheckName("branch", branch); err != nil {
		return Request{}, err
	}
	return j.ask(ctx, Request{Kind: CutoverRequest, By: by, Branch: branch})
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
	edits := 0
	for n := known + 1; len(found) < requestsAtOnce && edits < MaxAsked; n++ {
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
		edits += len(r.Edits)
	}
	return found, nil
}
