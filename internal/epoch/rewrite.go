package epoch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// RewriteMode says which rows of a table's sink are written anew at a change.
type RewriteMode string

// The modes of writing a table's sink anew.
const (
	RewriteTouched RewriteMode = "touched" // none: rows come as their keys change
	RewriteChanged RewriteMode = "changed" // all, of which the sink leaves out those that it has
	RewriteAll     RewriteMode = "all"     // all, and keys are deleted that the table lacks
)

// Rewrite is how far a table's sink has been written anew (D11): a pass over all
// slots, in their order.
type Rewrite struct {
	Mode RewriteMode `json:"mode"`
	// Cursor is the slot that comes next.
	Cursor Slot `json:"cursor"`
	// Ended are the ends of logs whose keys are deleted that the table lacks. A pass
	// that ends is done with these.
	Ended []LogEnd `json:"ended,omitempty"`
	// Later are those that came while the pass was under way: it compares with them as
	// well, and another pass over all slots follows for them.
	Later []LogEnd `json:"later,omitempty"`
}

// LogEnd is an epoch behind which another version has gone on.
type LogEnd struct {
	Branch string `json:"branch"`
	Task   string `json:"task"`
	Epoch  Epoch  `json:"epoch"`
	SHA256 string `json:"sha256"` // of the manifest
}

// EndOf is a head, as the end of its log.
func EndOf(h Head) LogEnd {
	return LogEnd{h.Manifest.Branch, h.Manifest.Task, h.Manifest.Epoch, h.Hash}
}

// Rewrote is what an epoch has written anew of a table's sink: all rows of some slots.
type Rewrote struct {
	Mode RewriteMode `json:"mode"`
	Slots
}

// Rewriting is what becomes of a sink's rewriting at a change: an upgrade, a rollback,
// a fresh start, or another version in place. wish is what a person wants (empty:
// nothing in particular), own what the branch has said of it before, unfinished what
// the end of the log before had still to do, and ended that end. What is unfinished
// goes on; a wish for more begins with the first slot again. It may be asked again with
// its own answer.
func Rewriting(wish RewriteMode, own, unfinished *Rewrite, ended LogEnd) *Rewrite {
	anew := wish == RewriteAll || wish == RewriteChanged
	r := Rewrite{Mode: wish}
	switch {
	case anew:
	case own != nil:
		r = *own
	case unfinished != nil:
		r = *unfinished
	default:
		return nil
	}
	began, later := map[LogEnd]bool{}, map[LogEnd]bool{ended: true}
	for _, known := range []*Rewrite{own, unfinished} {
		if known == nil {
			continue
		}
		for _, e := range known.Ended {
			began[e] = true
		}
		for _, e := range known.Later {
			later[e] = true
		}
	}
	if r.Ended, r.Later = sortedEnds(began), nil; r.Cursor == 0 {
		for e := range later {
			began[e] = true
		}
		r.Ended = sortedEnds(began)
		return &r
	}
	for e := range began {
		delete(later, e)
	}
	r.Later = sortedEnds(later)
	return &r
}

func sortedEnds(set map[LogEnd]bool) (ends []LogEnd) {
	for e := range set {
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, b LogEnd) int {
		return cmp.Or(cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.SHA256, b.SHA256))
	})
	return ends
}

// Passed is what is left to do once the slots up to last are written; nil if nothing
// is.
func (r Rewrite) Passed(last Slot) *Rewrite {
	switch {
	case last < AllSlots.Last:
		r.Cursor = last + 1
		return &r
	case len(r.Later) > 0:
		return &Rewrite{Mode: r.Mode, Ended: r.Later}
	}
	return nil
}

// Ends are all ends of logs that the pass compares with.
func (r *Rewrite) Ends() []LogEnd {
	if r == nil {
		return nil
	}
	return slices.Concat(r.Ended, r.Later)
}

// Equal tells whether two say the same; both may be nil.
func (r *Rewrite) Equal(other *Rewrite) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Mode == other.Mode && r.Cursor == other.Cursor && slices.Equal(r.Ended, other.Ended) && slices.Equal(r.Later, other.Later)
}

// EndedManifest reads the manifest at the end of a log.
func (j *Job) EndedManifest(ctx context.Context, e LogEnd) (Manifest, error) {
	m, hash, err := j.manifest(ctx, e.Branch, e.Task, e.Epoch)
	at := At{j.name, e.Branch, e.Task, e.Epoch}
	if missing := (*missingError)(nil); errors.As(err, &missing) {
		return m, j.damaged(at, ManifestPath(e.Branch, e.Task, e.Epoch), "the manifest of an epoch whose keys a sink that is written anew is compared with", "none")
	}
	if err == nil && hash != e.SHA256 {
		err = j.damaged(at, ManifestPath(e.Branch, e.Task, e.Epoch), "sha256 "+e.SHA256, hash)
	}
	return m, err
}

// EndsSince are the ends of the generations from the one that ended at an epoch on:
// what was delivered since is of their keys, or of the newest generation's. Gone are
// the branches of which clean-up has left nothing.
func (j *Job) EndsSince(ctx context.Context, task string, from Point) (ends []LogEnd, gone []string, err error) {
	records, err := j.LiveRecords(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	since := slices.IndexFunc(records, func(r LiveRecord) bool {
		return r.Ends != nil && r.Ends.Branch == from.Branch && r.Ends.Tasks[task].Epoch == from.Tasks[task]
	})
	if since < 0 {
		return nil, nil, nil
	}
	for _, r := range records[since:] {
		final, ok := r.Ends.Tasks[task]
		if !ok {
			return nil, nil, fmt.Errorf("%s: live record %d ends no task %s", j.name, r.N, task)
		}
		e := LogEnd{r.Ends.Branch, task, final.Epoch, final.SHA256}
		_, _, err := j.manifest(ctx, e.Branch, task, e.Epoch)
		if missing := (*missingError)(nil); errors.As(err, &missing) {
			gone = append(gone, e.Branch)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(ends, e) { // a generation without epochs ends where the one before did
			ends = append(ends, e)
		}
	}
	return ends, gone, nil
}
