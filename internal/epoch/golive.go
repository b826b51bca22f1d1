package epoch

import (
	"context"
	"fmt"
)

// Cutting says how a branch goes live.
type Cutting struct {
	// Kind is that of the generation: upgrade, rollback, resume, failover or fresh.
	Kind BranchKind
	// Sinks are those that the build has.
	Sinks []string
	// Settled is what a person says of sinks: a gap that is consented to, a rest that
	// is given up or to be drained, one that is filled from the base. Where new ones
	// start, the branch's record says.
	Settled map[string]SinkConsent
	// Rewrite has each table's sink of the build, with what is to be written anew of it
	// from the cut on; empty: what is unfinished.
	Rewrite map[string]RewriteMode
	// OtherOffsets says that a person wants the branch's own offsets, Replace that a
	// person wants the build although it was replaced. A rollback needs no Replace.
	OtherOffsets, Replace bool
}

// LookLive reads which branch is live, and notes it: only an owner that has read a
// live record of its branch writes under it (C5).
func (o *Owner) LookLive(ctx context.Context) (record LiveRecord, mine bool, err error) {
	record, ok, err := o.job.Live(ctx)
	if err != nil || !ok {
		return record, false, err
	}
	if record.Branch != o.branch {
		return record, false, nil
	}
	o.committing.Lock()
	defer o.committing.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.live = &record.N
	return record, true, nil
}

// GoLive is one try of rule U7, for the owner of a branch of one task, once the live
// branch has been sealed: it notes what the end of that notes, makes the live record,
// and reads back whose it is. IsLive says that this branch is live, and the owner
// commits under the record that is returned; CoverFinal and SealFirst that there is
// more to follow, or to seal, of the branch in that record: another's, if that was
// faster.
func (o *Owner) GoLive(ctx context.Context, c Cutting) (CutStep, LiveRecord, error) {
	for range maxTakes {
		view, err := o.cutView(ctx, c)
		if err != nil {
			return 0, view.Live, err
		}
		step, err := DecideCut(view)
		if err != nil {
			return 0, view.Live, fmt.Errorf("%s: %w", o.job.name, err)
		}
		switch step {
		case PutLive:
			if err := o.putLive(ctx, view, c.Kind); err != nil {
				return 0, view.Live, err
			}
		case CutSuperseded:
			final := view.Finals[o.task].Manifest
			return step, view.Live, &SupersededError{
				At: At{o.job.name, final.Branch, o.task, final.Epoch}, Build: view.Own[o.task].Manifest.Build, Now: final.Build,
			}
		case NoteFinals:
			note, err := view.Note(view.Own[o.task].Manifest, view.Finals[o.task])
			if err == nil {
				_, err = o.Commit(ctx, note)
			}
			if err != nil {
				return 0, view.Live, err
			}
		default:
			record, mine, err := o.LookLive(ctx)
			if err == nil && mine != (step == IsLive) {
				continue // another record has come since
			}
			return step, record, err
		}
	}
	return 0, LiveRecord{}, fmt.Errorf("%s: branch %s: other branches went live %d times while it was to; see `sluice status`", o.job.name, o.branch, maxTakes)
}

// MayGoLive tells beforehand whether [Owner.GoLive] would refuse: nil if it would not,
// as the followed branch stands now.
func (o *Owner) MayGoLive(ctx context.Context, c Cutting) error {
	view, err := o.cutView(ctx, c)
	if err != nil || view.Live.Branch == o.branch {
		return err
	}
	final := view.Finals[o.task]
	own := view.Own[o.task].Manifest
	if !view.Replace && hasBuild(final.Manifest.Superseded, own.Build) {
		return &SupersededError{At: At{o.job.name, final.Manifest.Branch, o.task, final.Manifest.Epoch}, Build: own.Build, Now: final.Manifest.Build}
	}
	if _, err := view.Note(own, final); err != nil {
		return fmt.Errorf("%s: %w", o.job.name, err)
	}
	// One that is back gets nothing of what is committed from now on, either.
	for _, name := range view.Sinks {
		chain, named := view.chainOf(name)
		if said := view.Settled[name]; named && chain.Dropped != "" && said.Gap == "" {
			return fmt.Errorf("%s: %w", o.job.name, &GapError{Branch: o.branch, Sink: name, From: chain.Confirmed, To: final.Manifest.Position + 1})
		}
	}
	return o.job.runsAhead(own, final.Manifest, view.Unread)
}

// unread are the sources that the version of one of two epochs does not read.
func (j *Job) unread(ctx context.Context, a, b Manifest) (map[string]bool, error) {
	if a.Version == b.Version {
		return nil, nil
	}
	first, err := j.Version(ctx, a.Version)
	if err != nil {
		return nil, err
	}
	second, err := j.Version(ctx, b.Version)
	if err != nil {
		return nil, err
	}
	unread := map[string]bool{}
	for _, m := range []Manifest{a, b} {
		for name := range m.Sources {
			_, one := first.Sources[name]
			_, other := second.Sources[name]
			if !one || !other {
				unread[name] = true
			}
		}
	}
	return unread, nil
}

// AheadError says that a branch has read further in a source than the one that it
// follows, which did not have that source before: it can never cover the end of that.
type AheadError struct {
	At
	Source, Partition string
	// Own is the offset that the branch reads next, Followed that of the other.
	Own, Followed int64
}

// Error implements error.
func (e *AheadError) Error() string {
	return fmt.Sprintf("%s: source %s, partition %s: expected a branch that has read no further than the live one, to offset %d; found offset %d, since the live one has that source only now. Nothing was sealed. Give the branch up with `sluice branch drop %s %s`, and upgrade again.",
		e.At, e.Source, e.Partition, e.Followed, e.Own, e.Job, e.Branch)
}

// ExitCode is the exit code of the command line.
func (e *AheadError) ExitCode() int { return 13 }

// runsAhead refuses a branch that is ahead of the one that it follows.
func (j *Job) runsAhead(own, followed Manifest, unread map[string]bool) error {
	for name, s := range own.Sources {
		theirs, both := followed.Sources[name]
		if !both || unread[name] {
			continue
		}
		for partition, at := range s.Partitions {
			if limit, noted := theirs.Partitions[partition]; noted && at.Next > limit.Next {
				return &AheadError{At: At{j.name, own.Branch, own.Task, own.Epoch}, Source: name, Partition: partition, Own: at.Next, Followed: limit.Next}
			}
		}
	}
	return nil
}

// cutView reads live, then the ends of its branch.
func (o *Owner) cutView(ctx context.Context, c Cutting) (CutView, error) {
	own, err := o.ownEnd(ctx)
	if err != nil {
		return CutView{}, err
	}
	v := CutView{
		Branch: o.branch, Own: map[string]Head{o.task: own}, Finals: map[string]Head{},
		Sinks: c.Sinks, Settled: map[string]SinkConsent{}, Rewrite: c.Rewrite,
		OtherOffsets: c.OtherOffsets, Replace: c.Replace || c.Kind == Rollback,
	}
	file, err := o.job.BranchFile(ctx, o.branch)
	if err != nil {
		return v, err
	}
	for sink, start := range file.Starts {
		v.Settled[sink] = SinkConsent{Start: start}
	}
	for sink, said := range c.Settled {
		said.Start = max(said.Start, v.Settled[sink].Start)
		v.Settled[sink] = said
	}
	live, ok, err := o.job.Live(ctx)
	if err != nil || !ok {
		return v, fmt.Errorf("%s: the job has never run, so that nothing can be cut over", o.job.name)
	}
	if v.Live = live; live.Branch == o.branch {
		return v, nil
	}
	if v.Finals[o.task], err = o.job.final(ctx, live, o.task); err != nil {
		return v, err
	}
	v.Unread, err = o.job.unread(ctx, own.Manifest, v.Finals[o.task].Manifest)
	return v, err
}

// ownEnd is the owner's head, and the seal behind it if the branch was given up.
func (o *Owner) ownEnd(ctx context.Context) (Head, error) {
	m, hash := o.Head()
	head := Head{Manifest: m, Hash: hash}
	there, err := o.job.store.Exists(ctx, o.job.Object(ManifestPath(o.branch, o.task, m.Epoch+1)))
	if err != nil {
		return head, fmt.Errorf("%s: %w", o.job.name, err)
	}
	if !there {
		return head, nil
	}
	newest, _, err := o.job.endOf(ctx, o.branch, o.task, m.Epoch)
	if err == nil && newest.Sealed() && newest.Hash == hash {
		head.Seal = newest.Seal
	}
	return head, err
}

// final is the end of the live branch's log. Where that has had nothing of its own,
// and was cleaned away, it is the end of the one before it (H16).
func (j *Job) final(ctx context.Context, live LiveRecord, task string) (Head, error) {
	head, gone, err := j.endOf(ctx, live.Branch, task, 0)
	if err != nil || !gone {
		return head, err
	}
	seal := head.Seal
	at := At{j.name, live.Branch, task, 0}
	if live.Ends == nil {
		return head, j.damaged(at, ManifestPath(live.Branch, task, 0), "the log of a branch that is live", "none")
	}
	end := live.Ends.Tasks[task]
	m, hash, err := j.manifest(ctx, live.Ends.Branch, task, end.Epoch)
	if err != nil {
		return head, j.owedGone(err)
	}
	if hash != end.SHA256 {
		return head, j.damaged(At{j.name, live.Ends.Branch, task, end.Epoch}, ManifestPath(live.Ends.Branch, task, end.Epoch), "sha256 "+end.SHA256, hash)
	}
	return Head{Manifest: m, Hash: hash, Seal: seal}, nil
}

// putLive creates the live record. Whose stands there is for the next look.
func (o *Owner) putLive(ctx context.Context, v CutView, kind BranchKind) error {
	file, err := o.job.BranchFile(ctx, o.branch)
	if err != nil {
		return err
	}
	tasks, err := o.job.tasksOf(ctx, o.branch)
	if err != nil {
		return err
	}
	if len(tasks) != 1 {
		return fmt.Errorf("%s: branch %s has %d tasks, and one owner can't cut over for all", o.job.name, o.branch, len(tasks))
	}
	r := v.Record(kind, file.Layout)
	r.Format, r.JobID, r.By, r.Time = Format, o.job.file.JobID, o.writer.String(), o.job.now()
	data, err := r.encode()
	if err != nil {
		return fmt.Errorf("%s: live record %d can't be written: %w", o.job.name, r.N, err)
	}
	_, _, err = o.job.create(ctx, LivePath(r.N), data)
	return err
}
