package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
)

// pointHelp tells how an epoch is named.
const pointHelp = `An epoch is named by its number, by BRANCH:NUMBER, or by a savepoint's name.`

// pointOf reads the manifest of an epoch that a person has named. A number alone is
// one of the branch, or of the live one if that is empty.
func pointOf(ctx context.Context, job *epoch.Job, branch, text string) (epoch.Manifest, error) {
	name := epochName(text)
	if cut := strings.LastIndexByte(text, ':'); cut > 0 {
		if _, ok := epochName(text[cut+1:]).number(); ok {
			branch, name = text[:cut], epochName(text[cut+1:])
		}
	}
	if _, ok := name.number(); !ok {
		branch = "" // a savepoint says it
	}
	m, err := name.manifest(ctx, job, branch)
	if err == nil && m.Kind == epoch.Seal {
		err = fmt.Errorf("%s: branch %s: epoch %d is the seal and has no state; use %d, the last that has", job.Name(), m.Branch, m.Epoch, m.Epoch-1)
	}
	return m, err
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
