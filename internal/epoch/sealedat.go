package epoch

import (
	"context"
	"fmt"
)

// NeverLiveError says that there is nothing for a version to go back to.
type NeverLiveError struct {
	Job, Version string
}

// Error implements error.
func (e *NeverLiveError) Error() string {
	return fmt.Sprintf("%s: version %.12s was live in no generation that has ended: expected one to go back to, found none. Nothing was changed. `sluice log %s --graph` shows what was live.", e.Job, e.Version, e.Job)
}

// ExitCode is the exit code of the command line.
func (e *NeverLiveError) ExitCode() int { return 13 }

// SealedAt is where a version was sealed last: the end of the newest generation that
// ran it and has ended. A rollback begins there.
func (j *Job) SealedAt(ctx context.Context, task, version string) (Point, error) {
	records, err := j.LiveRecords(ctx, nil)
	if err != nil {
		return Point{}, err
	}
	for i := len(records) - 1; i > 0; i-- {
		at, ok := records[i].Before()
		if !ok {
			continue
		}
		m, _, err := j.manifest(ctx, at.Branch, task, at.Tasks[task])
		if err != nil {
			return Point{}, j.startGone(ctx, err)
		}
		if m.Version == version {
			return at, nil
		}
	}
	return Point{}, &NeverLiveError{Job: j.name, Version: version}
}
