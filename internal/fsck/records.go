package fsck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// place is a task's log.
type place struct{ branch, task string }

// records are a job's objects that are no manifests and no data: as many as a
// job has had versions, branches, savepoints.
type records struct {
	jobID    string
	versions map[string]*epoch.Version // by hash; nil: damaged
	layouts  map[uint64]bool
	branches map[string]*epoch.BranchFile // nil: damaged
	lives    map[uint64]*epoch.LiveRecord // nil: damaged
	requests map[uint64]bool
	beats    map[place]epoch.Heartbeat
	tasks    map[place]bool
	pins     []pin

	named   map[string]string // versions that manifests name, and one place where
	newest  epoch.Generation  // of those under which manifests were written
	livesIn string            // where it is named; "" if nowhere
	asked   uint64            // newest request that a manifest notes
}

// pin is a pin or a savepoint: an epoch that clean-up leaves alone.
type pin struct {
	path, what string
	point      epoch.Point
}

func newRecords() records {
	return records{
		versions: map[string]*epoch.Version{}, layouts: map[uint64]bool{}, branches: map[string]*epoch.BranchFile{},
		lives: map[uint64]*epoch.LiveRecord{}, requests: map[uint64]bool{}, beats: map[place]epoch.Heartbeat{},
		tasks: map[place]bool{}, named: map[string]string{},
	}
}

// logs are the logs that there are, in the order of their names.
func (r *records) logs() []place {
	return slices.SortedFunc(maps.Keys(r.tasks), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.branch, b.branch), cmp.Compare(a.task, b.task))
	})
}

// readRecords lists the job's folder, and reads all but manifests and data.
func (c *checker) readRecords(ctx context.Context) error {
	if err := c.readJob(ctx); err != nil {
		return err
	}
	for after, seen := "", 0; ; {
		listed, err := c.store.List(ctx, c.job+"/", after, page)
		if err != nil {
			return fmt.Errorf("%s: %w", c.job, err)
		}
		if seen += len(listed); seen == 0 {
			return &epoch.NoJobError{Job: c.job, Store: c.store.String()}
		}
		for _, l := range listed {
			path := strings.TrimPrefix(l.Name, c.job+"/")
			name, ok := epoch.ParsePath(path)
			if !ok {
				c.foreign(l.Name)
				continue
			}
			if name.Branch != "" && name.Task != "" {
				c.records.tasks[place{name.Branch, name.Task}] = true
			}
			if name.Kind == epoch.DataObject {
				c.progress.Total += l.Size
			}
			if err := c.readRecord(ctx, path, name); err != nil {
				return err
			}
		}
		if len(listed) < page {
			return nil
		}
		after = listed[len(listed)-1].Name
	}
}

func (c *checker) foreign(name string) {
	if c.report.ForeignCount++; len(c.report.Foreign) < maxForeign {
		c.report.Foreign = append(c.report.Foreign, name)
	}
}

const nothingRuns = "the job can't be opened"

// readJob reads job.json. Without it the job's id is that of its manifests.
func (c *checker) readJob(ctx context.Context) error {
	job, o, err := read[epoch.JobFile](ctx, c, epoch.JobPath, nothingRuns)
	if err != nil || o == damaged {
		return err
	}
	if o == absent {
		// A folder in which nothing else is, is no job's: see readRecords.
		listed, err := c.store.List(ctx, c.job+"/", "", 1)
		if err == nil && len(listed) > 0 {
			c.found(epoch.JobPath, "the job's record", "none", nothingRuns)
		}
		return err
	}
	if job.Job != c.job {
		c.found(epoch.JobPath, "the record of job "+c.job, "that of job "+job.Job, nothingRuns)
		return nil
	}
	c.records.jobID = job.JobID
	return nil
}

// readRecord reads one object, if it is a record.
func (c *checker) readRecord(ctx context.Context, path string, name epoch.Name) (err error) {
	r := &c.records
	switch name.Kind {
	case epoch.VersionObject:
		r.versions[name.Label], err = c.readVersion(ctx, path, name.Label)
	case epoch.FunctionsObject:
		_, err = checked(ctx, c, path, func(f epoch.Functions) (string, bool) {
			return f.JobID, epoch.FunctionsPath(f.Version, f.Executable) == path
		}, "a plan can't tell whether functions were mixed up since that build")
	case epoch.LayoutObject:
		r.layouts[name.Number] = true
		_, err = checked(ctx, c, path, func(l epoch.Layout) (string, bool) {
			return l.JobID, uint64(l.Layout) == name.Number
		})
	case epoch.BranchObject:
		r.branches[name.Branch], err = checked(ctx, c, path, func(b epoch.BranchFile) (string, bool) {
			return b.JobID, b.Branch == name.Branch
		})
	case epoch.LiveObject:
		r.lives[name.Number], err = checked(ctx, c, path, func(l epoch.LiveRecord) (string, bool) {
			return l.JobID, uint64(l.N) == name.Number
		})
	case epoch.FloorObject:
		_, err = checked(ctx, c, path, func(f epoch.Floor) (string, bool) {
			return f.JobID, f.Branch == name.Branch && f.Task == name.Task && f.Epoch == name.Epoch
		})
	case epoch.ControlObject:
		r.requests[name.Number] = true
		_, err = checked(ctx, c, path, func(q epoch.Request) (string, bool) { return q.JobID, q.N == name.Number })
	case epoch.HeartbeatObject:
		beat, err := checked(ctx, c, path, func(h epoch.Heartbeat) (string, bool) {
			return h.JobID, h.Branch == name.Branch && h.Task == name.Task
		}, "nothing for good: the next owner writes it anew")
		if beat != nil {
			r.beats[place{name.Branch, name.Task}] = *beat
		}
		return err
	case epoch.PinObject:
		p, err := checked(ctx, c, path, func(p epoch.Pin) (string, bool) { return p.JobID, true })
		if p != nil {
			r.pins = append(r.pins, pin{path, "pin " + name.Label, p.Point})
		}
		return err
	case epoch.SavepointObject:
		p, err := checked(ctx, c, path, func(p epoch.Savepoint) (string, bool) {
			return p.JobID, p.Name == name.Given
		})
		if p != nil {
			r.pins = append(r.pins, pin{path, "savepoint " + name.Given, p.Point})
		}
		return err
	case epoch.DrainedObject:
		err = c.readSealed(ctx, path)
	}
	return err
}

// checked reads a record and holds it against the job and its name. It is nil
// if it is damaged, or was removed since it was listed.
func checked[T epoch.Stored](ctx context.Context, c *checker, path string, is func(T) (jobID string, named bool), breaks ...string) (*T, error) {
	v, o, err := read[T](ctx, c, path, breaks...)
	if o != good || err != nil {
		return nil, err
	}
	jobID, named := is(v)
	switch {
	case !c.ours(jobID):
		c.found(path, "an object of job "+c.records.jobID, "one of job "+jobID, breaks...)
	case !named:
		c.found(path, "the object of its name", "another one's", breaks...)
	default:
		return &v, nil
	}
	return nil, nil
}

// ours tells whether an id is the job's. Without a readable job.json the first
// that is met counts.
func (c *checker) ours(jobID string) bool {
	if c.records.jobID == "" {
		c.records.jobID = jobID
	}
	return c.records.jobID == jobID
}

func (c *checker) readVersion(ctx context.Context, path, hash string) (*epoch.Version, error) {
	breaks := "what the job was in this version can't be compared with a build"
	v, o, err := read[epoch.Version](ctx, c, path, breaks)
	if o != good || err != nil {
		return nil, err
	}
	if found, err := v.Hash(); err != nil || found != hash {
		c.found(path, "a version of the hash in its name", "one of hash "+found, breaks)
		return nil, nil
	}
	return &v, nil
}

// readSealed reads an object of which only the sum is checked.
func (c *checker) readSealed(ctx context.Context, path string) error {
	data, o, err := c.bytes(ctx, path)
	if o != good || err != nil {
		return err
	}
	if err := epoch.CheckSum(data); err != nil {
		c.found(path, "an object as it was written", "that "+err.Error())
	}
	return nil
}
