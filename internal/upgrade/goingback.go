package upgrade

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// GoingBack is how a job could go back to what was live before.
type GoingBack struct {
	// Branch is the one that the newest live record ended, Final where.
	Branch string
	Final  epoch.Final
	// Build is what ran there; zero if the final epoch is gone.
	Build epoch.Build
	// Kept says that the final epoch is kept: a rollback starts from it. Clean-up
	// leaves it alone until another branch goes live.
	Kept bool
	// Sources are the offsets from which a rollback reads.
	Sources map[string]epoch.SourceState
	// Timetable says that all epochs since are kept, so that a rollback reads the
	// inputs as they were read; without, it reads them by its own clock.
	Timetable bool
	// Until is when clean-up may begin with those epochs, in microseconds since 1970
	// UTC by the clock of the live branch's epochs, and once Epochs have come behind
	// the first; 0: there is none yet, or no end.
	Until  int64
	Epochs epoch.Epoch
}

// GoBack finds how a job could go back, by the rules by which its epochs are kept; a
// retention of no epochs keeps all. ok is false for a job that has nothing to go back
// to.
func GoBack(ctx context.Context, job *epoch.Job, bs Branches, keeps epoch.Retention) (g GoingBack, ok bool, err error) {
	if len(bs.Records) == 0 || bs.Records[len(bs.Records)-1].Ends == nil {
		return g, false, nil
	}
	record := bs.Records[len(bs.Records)-1]
	g.Branch, g.Final = record.Ends.Branch, record.Ends.Tasks[bs.Task]
	final, err := job.Manifest(ctx, g.Branch, bs.Task, g.Final.Epoch)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return g, true, nil
	case err != nil:
		return g, true, err
	}
	g.Kept, g.Build, g.Sources = true, final.Build, final.Sources
	live, found := bs.Named(record.Branch)
	if !found || live.Gone {
		return g, true, nil
	}
	first := record.Covers[bs.Task] + 1 // what a rollback has to follow begins here
	m, err := job.Manifest(ctx, record.Branch, bs.Task, first)
	switch {
	case errors.Is(err, store.ErrNotFound):
		g.Timetable = first > live.Head.Manifest.Epoch
		return g, true, nil
	case err != nil:
		return g, true, err
	}
	g.Timetable = true
	if keeps.Epochs > 0 {
		g.Until, g.Epochs = m.Time+keeps.Micros, keeps.Epochs
	}
	return g, true, nil
}
