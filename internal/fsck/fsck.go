package fsck

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// Options say how much is checked, and who is told.
type Options struct {
	// Shallow leaves out decoding: files are held against their hashes alone,
	// which finds all damage done to them. Decoding also finds what was written
	// wrongly, and costs about as much again. Defaults to false.
	Shallow bool
	// Readers is how many files are read at once. Defaults to GOMAXPROCS.
	Readers int
	// Progress, if set, is told now and then how far it is, by one goroutine at a
	// time.
	Progress func(Progress)
}

// Progress is how far a check is.
type Progress struct {
	// Objects is how many objects have been looked at.
	Objects int64
	// Bytes of Total have been compared. Total counts left-overs as well, which
	// are not read: the end comes a little early.
	Bytes, Total int64
}

// Report is what a check has found.
type Report struct {
	Job   string `json:"job"`
	JobID string `json:"job_id"`
	// Objects have been looked at, and Bytes of segments and outboxes compared.
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
	// Findings is what is damaged, by object; More counts those that there was no
	// room for.
	Findings []Finding `json:"findings"`
	More     int64     `json:"more,omitzero"`
	// Logs says what can still be read.
	Logs []Log `json:"logs"`
	// LeftOvers counts objects that nothing refers to, or not yet: clean-up takes
	// them in time.
	LeftOvers     int64 `json:"left_overs"`
	LeftOverBytes int64 `json:"left_over_bytes"`
	// Foreign are objects whose names are no job's, the first of them; they are
	// left alone.
	Foreign      []string `json:"foreign,omitempty"`
	ForeignCount int64    `json:"foreign_count,omitzero"`
}

// Whole tells whether nothing is damaged.
func (r Report) Whole() bool { return len(r.Findings) == 0 }

// Finding is an object that isn't what it must be.
type Finding struct {
	// Object is its name in the store.
	Object string `json:"object"`
	// Expected and Found say what it should be and what it is.
	Expected string `json:"expected"`
	Found    string `json:"found"`
	// Breaks says what can't be done without it.
	Breaks []string `json:"breaks,omitempty"`
}

// Log is a task's log on a branch.
type Log struct {
	Branch string `json:"branch"`
	Task   string `json:"task"`
	// Floor is the oldest epoch that is kept, Head the newest that is no seal.
	Floor epoch.Epoch `json:"floor"`
	Head  epoch.Epoch `json:"head"`
	// Epochs is how many there are from the floor on.
	Epochs int64 `json:"epochs"`
	Sealed bool  `json:"sealed"`
	// Gone says that the whole log has been cleaned away.
	Gone bool `json:"gone,omitzero"`
	// Whole is the newest epoch that can be restored; nil if there is none.
	Whole *epoch.Epoch `json:"whole"`
}

const (
	// maxFindings bounds the findings that are told one by one.
	maxFindings = 1000
	// maxForeign bounds the foreign names that are told.
	maxForeign = 20
	// page is how many objects are listed at once: a folder is read as a whole
	// for each page.
	page = 1 << 16
)

// checker is a check under way.
type checker struct {
	store store.Store
	job   string
	o     Options

	records records
	reading sync.WaitGroup
	files   chan file

	mu       sync.Mutex
	report   Report
	progress Progress
	suspects map[string]Finding  // by path: files that aren't what they must be, if a kept manifest refers to them
	referred map[uint64]struct{} // hashes of the paths that manifests refer to: 8 bytes for each, not a hundred
}

// Check checks a job. The error says why the check couldn't be finished; what is
// damaged stands in the report. It is a *[epoch.NoJobError] if the store has
// nothing of such a job.
func Check(ctx context.Context, s store.Store, job string, o Options) (Report, error) {
	if err := epoch.CheckName("job", job); err != nil {
		return Report{}, err
	}
	c := &checker{
		store: s, job: job, o: o, files: make(chan file), report: Report{Job: job},
		records: newRecords(), suspects: map[string]Finding{}, referred: map[uint64]struct{}{},
	}
	if err := c.readRecords(ctx); err != nil {
		return Report{}, err
	}
	logs, err := c.readLogs(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := c.settle(ctx, logs); err != nil {
		return Report{}, err
	}
	c.checkRecords(logs)
	if err := c.countLeftOvers(ctx, logs); err != nil {
		return Report{}, err
	}
	for _, l := range logs {
		c.report.Logs = append(c.report.Logs, l.Log)
	}
	c.report.JobID = c.records.jobID
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
	return c.report, nil
}

// readLogs walks all logs while their files are read side by side.
func (c *checker) readLogs(ctx context.Context) (logs []*log, err error) {
	for range cmp.Or(max(c.o.Readers, 0), runtime.GOMAXPROCS(0)) {
		c.reading.Go(func() {
			for f := range c.files {
				c.checkFile(ctx, f)
			}
		})
	}
	for _, at := range c.records.logs() {
		l := &log{Log: Log{Branch: at.branch, Task: at.task}}
		logs = append(logs, l)
		if err = c.walk(ctx, l); err != nil {
			break
		}
	}
	if err == nil {
		err = c.readPinned(ctx, logs)
	}
	close(c.files)
	c.reading.Wait()
	return logs, cmp.Or(err, ctx.Err())
}

// object is the name in the store of a path in the job's folder.
func (c *checker) object(path string) string { return c.job + "/" + path }

// found adds a finding.
func (c *checker) found(path, expected, found string, breaks ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(Finding{c.object(path), expected, found, breaks})
}

func (c *checker) add(f Finding) {
	if len(c.report.Findings) == maxFindings {
		c.report.More++
		return
	}
	c.report.Findings = append(c.report.Findings, f)
}

// counted tells the progress.
func (c *checker) counted(objects, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Objects += objects
	c.report.Bytes += bytes
	c.progress.Objects, c.progress.Bytes = c.report.Objects, c.report.Bytes
	if c.o.Progress != nil {
		c.o.Progress(c.progress)
	}
}
