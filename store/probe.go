package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/sluicestream/sluice/env"
)

const (
	// probedNames is how many names two openers race for at a start: enough for
	// a store that always lets both win, or shows a name late, and done in about
	// a millisecond. Rare double winners are for `sluice fsck --probe`.
	probedNames = 8
	// probeTries bounds how often a probe is made again because its files were
	// removed under it.
	probeTries = 5
)

// ProbeOptions say what a probe lets pass.
type ProbeOptions struct {
	// Volatile allows file systems that keep every promise but the one to
	// outlast a power loss, as those in memory. Defaults to false.
	Volatile bool
}

// ProbeReport is what a probe has found of a place that is fit.
type ProbeReport struct {
	// Store is the folder.
	Store string
	// FileSystem is the kernel's name for it, or "unknown".
	FileSystem string
	// Names is how many names were raced for.
	Names int
}

// Probe finds out whether the folder root, which is made if there is none, can
// be a checkpoint store: two openers race for names, exactly one must get each,
// the other must read his bytes and can't take the name, a listing shows it at
// once, a rename replaces, and files and folders can be synced. File systems
// that are known not to keep this are refused by name. Nothing stays behind; a
// process that is killed leaves some hidden files, which the next to open the
// store removes once they are a minute old.
//
// The error is an *[UnfitError] if the place is not fit.
func Probe(ctx context.Context, e *env.Env, root string, o ProbeOptions) (ProbeReport, error) {
	if _, err := OpenFolder(e, root); err != nil {
		return ProbeReport{}, err
	}
	report := ProbeReport{Store: root, FileSystem: unknownFS, Names: probedNames}
	m := mountOf(e.Files, root)
	report.FileSystem = m.String()
	if t, known := m.unfit(); known && !(t.fault == Forgets && o.Volatile) {
		return report, &UnfitError{Store: root, FileSystem: m.String(), Fault: t.fault, Why: t.why}
	}
	err := errDisturbed
	for try := 0; try < probeTries && errors.Is(err, errDisturbed); try++ {
		var id string
		if id, err = e.ID(); err == nil {
			err = NewRace(e, root, id).probe(ctx)
		}
	}
	if errors.Is(err, errDisturbed) {
		err = fmt.Errorf("store %s: probe: tried %d times: %w", root, probeTries, err)
	}
	return report, err
}

// probe races two openers for some names, and tries what else a store needs.
func (r *Race) probe(ctx context.Context) error {
	openers := []string{"a", "b"}
	defer r.End(probedNames, openers)
	for name := range probedNames {
		winners, err := r.run(ctx, name, openers)
		if err != nil {
			return err
		}
		listed, err := r.Listed()
		if err != nil {
			return err
		}
		if err := r.Judge(name, winners, openers, listed); err != nil {
			return err
		}
	}
	return r.probeRename()
}

// run lets the openers go at one name together, and returns who got it.
func (r *Race) run(ctx context.Context, name int, openers []string) (winners []string, err error) {
	won, errs := make([]bool, len(openers)), make([]error, len(openers))
	start := make(chan struct{})
	var running sync.WaitGroup
	for i, who := range openers {
		running.Go(func() {
			<-start
			won[i], errs[i] = r.Try(ctx, name, who)
		})
	}
	close(start)
	running.Wait()
	for i, who := range openers {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if won[i] {
			winners = append(winners, who)
		}
	}
	return winners, nil
}

// probeRename moves one file over another, synced as a store's files are.
func (r *Race) probeRename() error {
	target := r.target(probedNames)
	moved := [][]byte{contentOf(probedNames, "first"), contentOf(probedNames, "second")}
	defer r.fs.Remove(target)
	for i, data := range moved {
		source := r.source(probedNames, fmt.Sprint(i))
		defer r.fs.Remove(source)
		if err := r.write(source, data, i == 0); err != nil {
			return err
		}
		if err := r.fs.Rename(source, target); err != nil {
			return fmt.Errorf("store %s: probe: %w", r.root, err)
		}
		if found, err := r.read(target, len(data)); err != nil || !bytes.Equal(found, data) {
			return r.unfit(RenameFails, fmt.Sprintf("a file that was moved to a name isn't what stands there (%q, %v)", found, err))
		}
	}
	if err := r.fs.SyncDir(filepath.Dir(target)); cannotSync(err) {
		return r.unfit(NoSync, fmt.Sprintf("folders can't be synced (%v)", err))
	} else if err != nil {
		return fmt.Errorf("store %s: probe: %w", r.root, err)
	}
	return nil
}

// Probe is [Probe] of the store's folder, in its own environment.
func (f *Folder) Probe(ctx context.Context, o ProbeOptions) (ProbeReport, error) {
	return Probe(ctx, f.env, f.root, o)
}
