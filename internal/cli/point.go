package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// snapshot is a job at the end of one of its epochs.
type snapshot struct {
	job   *epoch.Job
	epoch epoch.Manifest
}

// looking are the flags of commands that look at an epoch.
type looking struct {
	epoch  string
	branch string
}

// pointHelp tells how an epoch is named.
const pointHelp = `An epoch is named by its number, by BRANCH:NUMBER, or by a savepoint's name.`

func (l *looking) addTo(c *cobra.Command) {
	c.Flags().StringVar(&l.epoch, "epoch", "", "the `epoch`: a number, BRANCH:NUMBER or a savepoint (default the newest)")
	c.Flags().StringVar(&l.branch, "branch", "", "the `branch`; defaults to the live one")
}

// at reads the manifest of the epoch that is meant.
func (l *looking) at(ctx context.Context, job *epoch.Job) (s snapshot, err error) {
	s.job = job
	branch := l.branch
	if branch == "" {
		if branch, err = liveBranch(ctx, job); err != nil {
			return s, err
		}
	}
	if l.epoch == "" {
		head, err := job.Head(ctx, branch, epoch.FirstTask)
		s.epoch = head.Manifest
		return s, err
	}
	s.epoch, err = pointOf(ctx, job, branch, l.epoch)
	return s, err
}

// pointOf reads the manifest of an epoch that a person has named. A number alone is
// one of the branch.
func pointOf(ctx context.Context, job *epoch.Job, branch, text string) (epoch.Manifest, error) {
	if number, err := strconv.ParseUint(text, 10, 63); err == nil {
		return numbered(ctx, job, branch, epoch.Epoch(number))
	}
	if cut := strings.LastIndexByte(text, ':'); cut > 0 {
		if number, err := strconv.ParseUint(text[cut+1:], 10, 63); err == nil {
			return numbered(ctx, job, text[:cut], epoch.Epoch(number))
		}
	}
	savepoints, err := job.Savepoints(ctx)
	if err != nil {
		return epoch.Manifest{}, err
	}
	for _, s := range savepoints { // of one name the newest first
		if s.Name == text {
			return job.ManifestBelow(ctx, s.Branch, epoch.FirstTask, s.Tasks[epoch.FirstTask])
		}
	}
	return epoch.Manifest{}, fmt.Errorf("%s: there is no savepoint %s; name an epoch by its number, as `sluice log %s` tells it, by BRANCH:NUMBER, or by a savepoint", job.Name(), text, job.Name())
}

func numbered(ctx context.Context, job *epoch.Job, branch string, number epoch.Epoch) (epoch.Manifest, error) {
	m, err := job.Manifest(ctx, branch, epoch.FirstTask, number)
	if err != nil {
		return m, fmt.Errorf("%w; `sluice log %s --limit 0` lists the epochs that are kept", err, job.Name())
	}
	if m.Kind == epoch.Seal {
		return m, fmt.Errorf("%s: branch %s: epoch %d is the seal and has no state; use %d, the last that has", job.Name(), branch, number, number-1)
	}
	return m, nil
}

// pinned calls read while clean-up leaves epochs of a job alone. In a store that may
// only be read there can be no pin, and the epochs may be cleaned away meanwhile.
func pinned(c *cobra.Command, job *epoch.Job, epochs []epoch.Manifest, read func(ctx context.Context) error) error {
	ctx := c.Context()
	if err := job.DropReadersPins(ctx); err != nil && !readOnly(err) {
		return err
	}
	return job.Reading(ctx, epochs, epoch.ThisProcess().String(), func(err error) bool {
		if !readOnly(err) {
			return false
		}
		fmt.Fprintln(c.ErrOrStderr(), "the store may only be read, so that nothing keeps clean-up from what is read here; if it comes by, an error says so")
		return true
	}, read)
}

// readOnly tells whether an error says that nothing may be written.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
