package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// defaultStore is the store if nothing else is said.
const defaultStore = "sluice-data"

// place is the store that a command works on.
type place struct {
	env  *env.Env
	path string
}

// addTo gives a command, and those below it, the flag --store.
func (p *place) addTo(c *cobra.Command) {
	p.env = env.Real()
	c.PersistentFlags().StringVar(&p.path, "store", defaultStore, "the `folder` that is the checkpoint store; also SLUICE_STORE")
}

// open opens the store, and makes it if there is none.
func (p *place) open() (store.Store, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return store.OpenFolder(p.env, p.path)
}

// check refuses what can't be a store.
func (p *place) check() error {
	if p.path == "" {
		return usagef("--store: its path is empty; name a folder")
	}
	if strings.Contains(p.path, "://") {
		return usagef("--store %s: only folders can be stores", p.path)
	}
	return nil
}

// find opens a store that exists and has a job: a command that only looks makes
// none, and leaves other folders alone.
func (p *place) find() (store.Store, error) {
	entries, err := p.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, err := p.env.Files.Stat(filepath.Join(p.path, e.Name(), epoch.JobPath)); err == nil {
			return p.open()
		}
	}
	return nil, p.empty()
}

// entries are what lies in the store's folder, which must be there.
func (p *place) entries() ([]fs.DirEntry, error) {
	info, err := p.env.Files.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("there is no store at %s; name it with --store or SLUICE_STORE", p.absolute())
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p.path, err)
	}
	entries, err := p.env.Files.ReadDir(p.path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p.path, err)
	}
	return entries, nil
}

func (p *place) empty() error {
	return fmt.Errorf("the store %s has no job yet; name another with --store or SLUICE_STORE", p.absolute())
}

// absolute is the store's path from anywhere.
func (p *place) absolute() string {
	if path, err := filepath.Abs(p.path); err == nil {
		return path
	}
	return p.path
}

// job opens a job by its name, or the only one of the store if that is empty.
func (p *place) job(ctx context.Context, name string) (*epoch.Job, error) {
	s, err := p.find()
	if err != nil {
		return nil, err
	}
	if name != "" {
		job, err := epoch.FindJob(ctx, p.env, s, name)
		if missing := (*epoch.NoJobError)(nil); errors.As(err, &missing) {
			return nil, p.missing(ctx, s, missing)
		}
		return job, err
	}
	names, err := jobs(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case len(names) > 1:
		return nil, usagef("the store %s has several jobs: %s; say which", p.absolute(), strings.Join(names, ", "))
	}
	return epoch.FindJob(ctx, p.env, s, names[0])
}

// missing adds the jobs that there are.
func (p *place) missing(ctx context.Context, s store.Store, missing *epoch.NoJobError) error {
	names, err := jobs(ctx, s)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w It has: %s.", missing, strings.Join(names, ", "))
}

// lastBelow is behind every name in a folder.
const lastBelow = "/\U0010FFFF"

// jobs are the names of a store's jobs. It looks at one object of each folder.
func jobs(ctx context.Context, s store.Store) ([]string, error) {
	var names []string
	for after := ""; ; {
		page, err := s.List(ctx, "", after, 1)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return names, nil
		}
		folder, _, below := strings.Cut(page[0].Name, "/")
		if !below {
			after = page[0].Name
			continue
		}
		after = folder + lastBelow
		is, err := s.Exists(ctx, folder+"/"+epoch.JobPath)
		if err != nil {
			return nil, err
		}
		if is {
			names = append(names, folder)
		}
	}
}

// argument takes the first of a command's arguments, if it has as many as it
// can have: then it is the job's name.
func argument(args []string, most int) (job string, rest []string) {
	if len(args) == most {
		return args[0], args[1:]
	}
	return "", args
}

// liveBranch is the branch whose outputs are delivered.
func liveBranch(ctx context.Context, job *epoch.Job) (string, error) {
	live, ok, err := job.Live(ctx)
	if err != nil || !ok {
		return epoch.MainBranch, err
	}
	return live.Branch, nil
}
