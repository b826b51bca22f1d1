package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluicestream/sluice/env"
)

const (
	// raceMark begins the names of all that a race makes: sources in the scratch
	// folder, and behind a dot, so that no job can have them, names in the root.
	raceMark = "probe-"
	// staleRace is the age from which what a race made is believed to be left by
	// a dead process. A mistake is harmless: the race says that it was disturbed.
	staleRace = time.Minute
)

// errDisturbed says that a race's files were removed under it.
var errDisturbed = errors.New("the files of the probe were removed while it ran: another process opens the same store, or tidies it up")

// Race is a race of openers of one folder, in one process or in several, for
// names that no job can have. It makes each name as a store's create does, but
// syncs nothing.
type Race struct {
	fs         env.FS
	root, id   string
	fileSystem string
}

// NewRace returns the race of the given id, a random one that all its openers
// share, in the store in the folder root. Make the folder with [OpenFolder].
func NewRace(e *env.Env, root, id string) *Race {
	return &Race{fs: e.Files, root: filepath.Clean(root), id: id, fileSystem: mountOf(e.Files, root).String()}
}

// FileSystem is the kernel's name for the file system that the folder lies on,
// or "unknown".
func (r *Race) FileSystem() string { return r.fileSystem }

func (r *Race) source(name int, who string) string {
	return filepath.Join(r.root, scratch, fmt.Sprintf("%s%s-%06d-%s", raceMark, r.id, name, who))
}

func (r *Race) target(name int) string { return filepath.Join(r.root, r.hidden(name)) }

func (r *Race) hidden(name int) string { return fmt.Sprintf(".%s%s-%06d", raceMark, r.id, name) }

func contentOf(name int, who string) []byte { return fmt.Appendf(nil, "%06d by %s\n", name, who) }

// Try makes a name's file and links it to the name, as the opener who, and
// tells whether it got the name. A reply that was lost on the way from a file
// server is no error: whose file has the name counts.
func (r *Race) Try(ctx context.Context, name int, who string) (won bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	source := r.source(name, who)
	if err := r.write(source, contentOf(name, who), false); err != nil {
		return false, err
	}
	switch err := r.fs.Link(source, r.target(name)); {
	case err == nil || sameFile(r.fs, source, r.target(name)):
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case cannotLink(err):
		return false, r.unfit(NoLink, fmt.Sprintf("hard links can't be made (%v)", err))
	case errors.Is(err, fs.ErrNotExist):
		return false, errDisturbed
	default:
		return false, fmt.Errorf("store %s: probe: %w", r.root, err)
	}
}

func cannotLink(err error) bool {
	for _, proof := range []syscall.Errno{syscall.EPERM, syscall.EXDEV, syscall.ENOTSUP, syscall.ENOSYS} {
		if errors.Is(err, proof) {
			return true
		}
	}
	return false
}

// Judge holds what has become of a name against what a store promises: one of
// the openers got it, all read his bytes, the listing shows it, and it can't be
// had any more. The error is an *[UnfitError] if a promise was broken.
func (r *Race) Judge(name int, winners, openers []string, listed map[string]bool) error {
	err := r.judge(name, winners, openers, listed)
	if _, unfit := errors.AsType[*UnfitError](err); unfit && !r.stands(name, openers) {
		return errDisturbed
	}
	return err
}

func (r *Race) judge(name int, winners, openers []string, listed map[string]bool) error {
	if len(winners) != 1 {
		return r.unfit(TwoWinners, fmt.Sprintf("%d of %d openers got one name (%s)", len(winners), len(openers), strings.Join(winners, ", ")))
	}
	if err := r.mustRead(r.target(name), contentOf(name, winners[0])); err != nil {
		return err
	}
	if !listed[r.hidden(name)] {
		return r.unfit(ListingLags, "a listing doesn't show a file that was made before it")
	}
	for _, who := range openers {
		if who == winners[0] {
			continue
		}
		if err := r.fs.Link(r.source(name, who), r.target(name)); err == nil || sameFile(r.fs, r.source(name, who), r.target(name)) {
			return r.unfit(TwoWinners, "a link to a name that is taken succeeds")
		}
	}
	return r.mustRead(r.target(name), contentOf(name, winners[0]))
}

// stands tells whether a name's files are all there. Whoever tidies up removes
// them before the name itself: while they stand the name was not touched.
func (r *Race) stands(name int, openers []string) bool {
	for _, who := range openers {
		if _, err := r.fs.Stat(r.source(name, who)); err != nil {
			return false
		}
	}
	return true
}

// Listed are the names that the folder shows.
func (r *Race) Listed() (map[string]bool, error) {
	entries, err := r.fs.ReadDir(r.root)
	if err != nil {
		return nil, fmt.Errorf("store %s: probe: %w", r.root, err)
	}
	listed := map[string]bool{}
	for _, e := range entries {
		listed[e.Name()] = true
	}
	return listed, nil
}

// End removes what the race has made under the names from 0 up to names.
func (r *Race) End(names int, openers []string) {
	for name := range names {
		for _, who := range openers {
			r.fs.Remove(r.source(name, who))
		}
		r.fs.Remove(r.target(name))
	}
}

func (r *Race) unfit(fault Fault, why string) error {
	return &UnfitError{Store: r.root, FileSystem: r.fileSystem, Fault: fault, Why: why}
}

// write makes a file.
func (r *Race) write(path string, data []byte, sync bool) error {
	f, err := r.fs.Create(path)
	if err != nil {
		return fmt.Errorf("store %s: probe: %w", r.root, err)
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if sync && cannotSync(err) {
		return r.unfit(NoSync, fmt.Sprintf("files can't be synced (%v)", err))
	}
	if err != nil {
		return fmt.Errorf("store %s: probe: %w", r.root, err)
	}
	return nil
}

func cannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}

// mustRead holds what a reader finds against what was written.
func (r *Race) mustRead(path string, want []byte) error {
	found, err := r.read(path, len(want))
	if err != nil || !bytes.Equal(found, want) {
		return r.unfit(Unreadable, fmt.Sprintf("a reader finds %q (%v) where %q was written", found, err, want))
	}
	return nil
}

// read reads a file of which a number of bytes is expected.
func (r *Race) read(path string, want int) ([]byte, error) {
	f, err := r.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(want)+1))
}

// sameFile tells whether two names are one file.
func sameFile(files env.FS, a, b string) bool {
	left, err := files.Stat(a)
	if err != nil {
		return false
	}
	right, err := files.Stat(b)
	return err == nil && os.SameFile(left, right)
}
