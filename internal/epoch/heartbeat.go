package epoch

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicestream/sluice/store"
)

// Heartbeat is what a log's owner overwrites again and again while it lives. It
// decides nothing about the log: who waits for an owner, and people, look at it.
type Heartbeat struct {
	Format int    `json:"format"`
	JobID  string `json:"job_id"`
	Branch string `json:"branch"`
	Task   string `json:"task"`
	Owner  string `json:"owner"`
	Writer Writer `json:"writer"`
	Build  Build  `json:"build"`
	// Beat counts the owner's heartbeats, so that no two are alike.
	Beat uint64 `json:"beat"`
	Time int64  `json:"time"` // microseconds since 1970 UTC, by the owner's clock
	// Lease is the owner's own, in microseconds; it beats three times in one.
	Lease int64 `json:"lease"`
	// Keep, in microseconds, and KeepEpochs are for how long and how many epochs the
	// owner keeps at least; below 0 epochs it cleans up nothing.
	Keep       int64 `json:"keep,omitzero"`
	KeepEpochs int   `json:"keep_epochs,omitzero"`
	// Epoch is the newest that the owner knows to be committed.
	Epoch    Epoch    `json:"epoch"`
	Position Position `json:"position"`
	// Released says that the owner has ended, and commits nothing any more.
	Released bool `json:"released,omitzero"`
	// Role is what the owner is at: restoring, follower, running, stopping, stopped.
	Role string `json:"role,omitempty"`
	// RecordsPerSecond is the rate of late.
	RecordsPerSecond int64 `json:"records_per_second,omitzero"`
	// Sources tell how far the partitions have been read, and where they end.
	Sources map[string]map[string]Reach `json:"sources,omitempty"`
	// Pending counts the deliveries that are owed, by sink.
	Pending map[string]int64 `json:"pending,omitempty"`
	// Objections are what keeps a follower that is to go live from that.
	Objections []string `json:"objections,omitempty"`
}

// Reach is how far a partition has been read: Next is the offset to be read
// next, End that behind the last record, Start that of the oldest that there still is,
// where older ones are gone.
type Reach struct {
	Next  int64 `json:"next"`
	End   int64 `json:"end"`
	Start int64 `json:"start,omitzero"`
}

func (h Heartbeat) encode() ([]byte, error) { return encode(h) }

// Heartbeat reads the heartbeat of a log's owner; ok is false if there is none.
func (j *Job) Heartbeat(ctx context.Context, branch, task string) (h Heartbeat, ok bool, err error) {
	path := HeartbeatPath(branch, task)
	h, _, err = read[Heartbeat](ctx, j, At{Branch: branch, Task: task}, path)
	if errors.Is(err, store.ErrNotFound) {
		return h, false, nil
	}
	if err == nil && (h.JobID != j.file.JobID || h.Branch != branch || h.Task != task) {
		err = j.damaged(At{Branch: branch, Task: task}, path, fmt.Sprintf("the heartbeat of job %s", j.file.JobID),
			fmt.Sprintf("that of job %s, branch %s, task %s", h.JobID, h.Branch, h.Task))
	}
	return h, err == nil, err
}

// Beat overwrites the heartbeat. The caller has filled in how the job is; whose
// it is, when, and how far the log goes is filled in here.
func (o *Owner) Beat(ctx context.Context, h Heartbeat) error {
	o.mu.Lock()
	head := o.head
	o.beats++
	h.Beat = o.beats
	o.mu.Unlock()
	h.Format, h.JobID, h.Branch, h.Task = Format, o.job.file.JobID, o.branch, o.task
	h.Owner, h.Writer, h.Build, h.Time = o.id, o.writer, head.Build, o.job.now()
	h.Epoch, h.Position = head.Epoch, head.Position
	data, err := h.encode()
	if err != nil {
		return fmt.Errorf("%s: the heartbeat can't be written: %w", o.job.name, err)
	}
	if err := o.job.store.Replace(ctx, o.job.Object(HeartbeatPath(o.branch, o.task)), data); err != nil {
		return fmt.Errorf("%s: %w", o.job.name, err)
	}
	return nil
}

// checkBeat finds that the end of a log was lost: the heartbeat was read before
// the head, and names only what was committed, so the log can't end before it.
func (j *Job) checkBeat(beat Heartbeat, head Head) error {
	last := head.Manifest.Epoch
	if beat.Epoch <= last {
		return nil
	}
	m := head.Manifest
	return j.damaged(At{j.name, m.Branch, m.Task, beat.Epoch}, ManifestPath(m.Branch, m.Task, last+1),
		fmt.Sprintf("a manifest, since the heartbeat of owner %s tells of epoch %d", beat.Owner, beat.Epoch), "none")
}
