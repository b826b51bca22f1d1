package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
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
// only be read there can be no pin, and the epochs may be cleaned away meanwhile. A
// signal ends it: read's context ends, and the pins go.
func pinned(c *cobra.Command, job *epoch.Job, epochs []epoch.Manifest, read func(ctx context.Context) error) error {
	ctx, restore := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	defer context.AfterFunc(ctx, restore)() // a second signal does what it does by itself
	if err := job.DropReadersPins(ctx); err != nil && !readOnly(err) {
		return err
	}
	err := job.Reading(ctx, epochs, epoch.ThisProcess().String(), func(err error) bool {
		if !readOnly(err) {
			return false
		}
		fmt.Fprintln(c.ErrOrStderr(), "the store may only be read, so that nothing keeps clean-up from what is read here; if it comes by, an error says so")
		return true
	}, read)
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		err = fmt.Errorf("%s: %s was stopped by a signal, and has left nothing behind; start it again", job.Name(), c.CommandPath())
	}
	return err
}

// readOnly tells whether an error says that nothing may be written.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
