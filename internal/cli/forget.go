package cli

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// forgets are the flags of forget.
type forgets struct {
	keys, states []string
	wait         time.Duration
	status       bool
	request      uint64
	giveUp       uint64
}

func forgetCommand(p *place) *cobra.Command {
	var f forgets
	c := &cobra.Command{
		Use:   "forget [JOB] --key KEY",
		Short: "Delete the entries of keys from a job's state",
		Long: `Delete the entries of keys from a job's state: of all states that can have such a key,
or of those that --state names; of a map or list state all that the key has. KEY is
written as for sluice state read; one that is written as a JSON object is the key of
states with such keys only, unless --state names others. The job's owner deletes them before the first record
of an epoch: what the table's changes and sinks make of a delete happens, and records
that come later make new entries. The request holds no key, but a hash of it.

If the job runs, the command waits until that is done, for at most --wait. If it
doesn't, the request stays, and whoever runs the job next does it before anything is
read; with --wait it is waited for then too.

The command then tells what still holds the entries: the epochs from before, with
their segments and outboxes, until clean-up has passed them; savepoints, pins and other
branches; and what is out of reach. --status tells it again, and at last that all is
gone. With --json each request is an object in a line of its own.`,
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := argument(args, 1)
			if f.giveUp != 0 {
				return f.takeBack(c, p, name)
			}
			if f.status {
				return f.tell(c, p, name)
			}
			return f.ask(c, p, name)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.keys, "key", nil, "the `key` whose entries are deleted; may be repeated (default none)")
	mayBeEmpty(flags, "key")
	flags.StringArrayVar(&f.states, "state", nil, "delete from this `state` only; may be repeated (default all that can have the key)")
	flags.DurationVar(&f.wait, "wait", 2*time.Minute, "the `time` to wait at most until they are deleted; 0: don't wait")
	flags.BoolVar(&f.status, "status", false, "tell how far earlier requests are, and ask for nothing (default false)")
	flags.Uint64Var(&f.request, "request", 0, "with --status: the request of this `number`; 0: all")
	flags.Uint64Var(&f.giveUp, "give-up", 0, "take back the request of this `number`, which waits and keeps a new build from running; it counts as not met (default none)")
	flags.Bool("json", false, "write it as JSON (default false)")
	return c
}

// ask makes the request, and tells what comes of it.
func (f forgets) ask(c *cobra.Command, p *place, name string) error {
	switch {
	case len(f.keys) == 0:
		return usagef("%s: which key? Name it with --key, or ask with --status how far earlier requests are", c.CommandPath())
	case f.wait < 0:
		return usagef("--wait %v: 0 or more", f.wait)
	case f.request != 0:
		return usagef("--request %d: it goes with --status", f.request)
	}
	ctx := c.Context()
	s, err := open(ctx, p, name, looking{})
	if err != nil {
		return err
	}
	edits, keys, err := f.edits(s)
	if err != nil {
		return err
	}
	owner, err := ownershipOf(ctx, s.job)
	if err != nil {
		return err
	}
	request, err := s.job.AskForget(ctx, edits, keys, s.epoch.Version, epoch.ThisProcess().String())
	if err != nil {
		return err
	}
	var late error
	if f.wait > 0 && (!owner.ended() || c.Flags().Changed("wait")) {
		if late = awaitForgotten(ctx, p.env, s.job, request.N, f.wait); late != nil && ctx.Err() != nil {
			return late
		}
	}
	if err := writeForgotten(c, p, s.job, []epoch.Request{request}); err != nil {
		return err
	}
	return late
}

// edits are what the keys are in the states that can have them, and schemas those of
// these states' keys.
func (f forgets) edits(s snapshot) (edits []epoch.Edit, schemas map[string]string, err error) {
	schemas = map[string]string{}
	seen := map[epoch.Edit]bool{}
	for _, name := range f.states {
		if _, err := s.form(name); err != nil {
			return nil, nil, err
		}
	}
	for _, text := range f.keys {
		var faults []string
		found, object := false, isObject(text)
		for name, entry := range sorted(s.epoch.State) {
			if len(f.states) > 0 && !slices.Contains(f.states, name) {
				continue
			}
			form, err := state.FormOf(name, entry)
			if err != nil {
				return nil, nil, err
			}
			if len(f.states) == 0 && object && form.Key.Kind() != schema.KindRecord {
				faults = append(faults, fmt.Sprintf("%s has keys of %s, and the text is an object's: name the state with --state if it is meant as it is", name, shape(form.Key)))
				continue
			}
			key, err := encodeKey(form.Key, text)
			if err != nil {
				if len(f.states) > 0 {
					return nil, nil, usagef("state %s: key %s: %w; its keys are: %s", name, text, err, shape(form.Key))
				}
				faults = append(faults, fmt.Sprintf("%s has keys of %s", name, shape(form.Key)))
				continue
			}
			edit := epoch.Edit{State: name, Slot: epoch.Slot(xxhash.Sum64(key) >> 48), Hash: epoch.EditHash(s.job.ID(), key)}
			schemas[name] = entry.Key
			if found = true; !seen[edit] {
				seen[edit], edits = true, append(edits, edit)
			}
		}
		if !found && len(faults) == 0 {
			return nil, nil, fmt.Errorf("%s: epoch %d has no state, so that there is nothing to forget", s.job.Name(), s.epoch.Epoch)
		}
		if !found {
			return nil, nil, usagef("--key %s: no state can have such a key: %s", text, strings.Join(faults, "; "))
		}
	}
	return edits, schemas, nil
}

// isObject tells whether a key is written as a struct's: states of other keys are not
// meant by it then.
func isObject(text string) bool {
	v := jsontext.Value(text)
	return v.IsValid() && v.Kind() == '{'
}

// awaitForgotten waits until the newest epoch calls a request done.
func awaitForgotten(ctx context.Context, e *env.Env, job *epoch.Job, request uint64, most time.Duration) error {
	done, err := await(ctx, e.Clock, most, func() (bool, error) {
		o, err := ownershipOf(ctx, job)
		return o.head.Request >= request, err
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: request %d stays: %w", job.Name(), request, ctx.Err())
	case err == nil && !done:
		return fmt.Errorf("%s: request %d is not done within %v; it stays, and whoever runs the job does it; `sluice forget %s --status --request %d` tells how far it is",
			job.Name(), request, most, job.Name(), request)
	}
	return err
}

// tell tells how far earlier requests are.
func (f forgets) tell(c *cobra.Command, p *place, name string) error {
	if len(f.keys)+len(f.states) > 0 || c.Flags().Changed("wait") {
		return usagef("--status only tells, by --request or all; a request holds no keys by which it could be found")
	}
	job, err := p.job(c.Context(), name)
	if err != nil {
		return err
	}
	var requests []epoch.Request
	if f.request != 0 {
		r, err := f.theRequest(c.Context(), job, f.request)
		if err != nil {
			return err
		}
		requests = append(requests, r)
	} else if requests, err = forgetRequests(c.Context(), job); err != nil {
		return err
	}
	if len(requests) == 0 && !asJSON(c) {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s was never asked to forget anything\n", job.Name())
		return err
	}
	return writeForgotten(c, p, job, requests)
}

// takeBack gives a request up that waits.
func (f forgets) takeBack(c *cobra.Command, p *place, name string) error {
	if len(f.keys)+len(f.states) > 0 || f.status || f.request != 0 || c.Flags().Changed("wait") {
		return usagef("--give-up %d: it goes with no other flag", f.giveUp)
	}
	ctx := c.Context()
	job, err := p.job(ctx, name)
	if err != nil {
		return err
	}
	r, err := f.theRequest(ctx, job, f.giveUp)
	if err != nil {
		return err
	}
	owner, err := ownershipOf(ctx, job)
	if err != nil {
		return err
	}
	if owner.head.Request >= r.N {
		return usagef("--give-up %d: it doesn't wait any more; `sluice forget %s --status --request %d` tells what came of it", r.N, job.Name(), r.N)
	}
	if _, err := job.AskGiveUp(ctx, r.N, epoch.ThisProcess().String()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s, request %d: given up with the next start of the job; nothing is deleted by it then\n", job.Name(), r.N)
	return err
}

// theRequest is the request to forget of a number.
func (forgets) theRequest(ctx context.Context, job *epoch.Job, n uint64) (epoch.Request, error) {
	r, err := job.Request(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return r, fmt.Errorf("%s: there is no request %d; `sluice forget %s --status` tells of all", job.Name(), n, job.Name())
	}
	if err == nil && r.Kind != epoch.ForgetRequest {
		err = usagef("request %d: that one asks to %s", n, r.Kind)
	}
	return r, err
}

// forgetRequests are all requests to forget that there are.
func forgetRequests(ctx context.Context, job *epoch.Job) (all []epoch.Request, err error) {
	for after := uint64(0); ; {
		found, err := job.RequestsAfter(ctx, after)
		if err != nil || len(found) == 0 {
			return all, err
		}
		for _, r := range found {
			if after = r.N; r.Kind == epoch.UnreadableRequest {
				return nil, fmt.Errorf("%s: request %d can't be read: %s", job.Name(), r.N, r.By)
			}
			if r.Kind == epoch.ForgetRequest && len(r.Edits) > 0 {
				all = append(all, r)
			}
		}
	}
}

func writeForgotten(c *cobra.Command, p *place, job *epoch.Job, requests []epoch.Request) error {
	all, err := lookForgotten(c.Context(), job, requests, p.env.Clock.Now())
	if err != nil {
		return err
	}
	for _, one := range all {
		if asJSON(c) {
			err = writeJSON(c.OutOrStdout(), one)
		} else {
			_, err = io.WriteString(c.OutOrStdout(), one.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// String tells it to a person.
func (f forgotten) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString("  " + printable(fmt.Sprintf(format, args...)) + "\n") }
	fmt.Fprintf(&b, "%s, request %d: forget %s in %s\n", f.Job, f.Request, several(int64(f.Keys), "key"), printable(strings.Join(f.States, ", ")))
	switch {
	case f.Stage == "waiting":
		line("waiting: the owner %s; whoever runs the job does it before the next record that it reads", f.Owner)
	case f.GivenUp && f.Epoch != nil:
		line("given up after a part of it: epochs up to %d have deleted entries, %s; the others may live on under other names or keys", *f.Epoch, metEntries(*f.Entries))
	case f.GivenUp:
		line("given up: nothing was deleted; the entries may live on under other names or keys")
	case f.Epoch != nil:
		line("deleted in epoch %d, %s", *f.Epoch, metEntries(*f.Entries))
	case len(f.Unmet) < len(f.States):
		line("deleted, in an epoch that was cleaned away since")
	}
	if !f.GivenUp {
		for _, name := range f.Unmet {
			line("not deleted from %s, which had other keys by then or was taken over: look for the key, and ask again", name)
		}
	}
	if f.Stage == "gone" {
		line("gone: no segment, outbox or dead letter in the store holds it any more")
	} else {
		f.holders(line)
	}
	if len(f.Beyond) > 0 {
		line("out of reach: the sources, and what the sinks have got that keep all: %s; files of --set-aside", strings.Join(f.Beyond, ", "))
	} else {
		line("out of reach: the sources, and what others have copied from the sinks; files of --set-aside")
	}
	return b.String()
}

// holders tells what still holds it, and until when.
func (f forgotten) holders(line func(format string, args ...any)) {
	switch {
	case f.Stage == "waiting":
	case f.Merged != nil:
		line("merged: the segments of epoch %d and later hold nothing of it", *f.Merged)
	case f.Last != nil:
		line("not merged yet: the newest epoch's segments may hold it; the owner merges them, and the next one if this one ends")
	}
	line("may hold it: %s (%s) and %s (%s), dead letters included", several(f.Segments.Number, "segment"), size(f.Segments.Bytes),
		severalOutboxes(f.Outboxes.Number), size(f.Outboxes.Bytes))
	switch {
	case f.Stage == "waiting" || f.Merged == nil && f.Last != nil:
	case f.Last == nil:
		if f.Segments.Number+f.Outboxes.Number > 0 {
			line("no epoch of the log needs them: `sluice gc %s` removes what no savepoint, pin or branch keeps, and what a process has left once another has run the job", f.Job)
		}
	case f.Last.Never:
		line("epoch %d is the last that needs them, and the owner keeps all epochs: `sluice gc %s` removes them", f.Last.Epoch, f.Job)
	default:
		line("epoch %d is the last that needs them: it goes once epoch %d is committed, at %s or later; now with `sluice gc %s --keep 0s --keep-epochs 1`",
			f.Last.Epoch, f.Last.GoneEpoch, moment(f.Last.micros), f.Job)
	}
	for sink, n := range sorted(f.Pending) {
		line("clean-up waits for sink %s as well, to which %s owed", sink, severalDeliveries(n))
	}
	for _, s := range f.Savepoints {
		line("savepoint %s keeps epoch %d from before: `sluice savepoint drop %s %s`", s.Name, s.Epoch, s.Name, f.Job)
	}
	for _, pin := range f.Pins {
		line("pin %s keeps epoch %d from before, until its branch has begun or ended", pin.Name, pin.Epoch)
	}
	for _, branch := range f.Branches {
		line("branch %s has epochs from before, until it is dropped or cleaned up", branch)
	}
}

func severalOutboxes(n int64) string {
	if n == 1 {
		return "1 outbox"
	}
	return fmt.Sprintf("%s outboxes", count(n))
}

func severalDeliveries(n uint64) string {
	if n == 1 {
		return "1 delivery is"
	}
	return fmt.Sprintf("%s deliveries are", count(n))
}

func metEntries(n int64) string {
	switch n {
	case 0:
		return "in which there were no such entries"
	case 1:
		return "whose edits met 1 entry"
	}
	return fmt.Sprintf("whose edits met %s entries", count(n))
}
