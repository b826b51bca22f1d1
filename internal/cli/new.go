package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/scaffold"
)

// sluiceModule is the path of Sluice's own module.
const sluiceModule = "github.com/sluicestream/sluice"

func newCommand() *cobra.Command {
	var replace string
	c := &cobra.Command{
		Use:   "new DIR",
		Short: "Make a folder with a new job, that runs and passes its test",
		Long: `Make a folder with a new job: it reads orders as JSON lines, keeps a state for each
user and writes CSV. With it come its test, a sample of its input, a Makefile, and a
Dockerfile for an image without rights. The job, its module and its binary have the
folder's name.

The folder must not exist, or be empty. With --replace the job uses a clone of
Sluice instead of a published version.`,
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := args[0]
			if err := newJob(dir, replace); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s has a new job. Next: cd %s && make run\n", dir, shellWord(dir))
			return err
		},
	}
	c.Flags().StringVar(&replace, "replace", "", "use the clone of Sluice in this `folder` (default none)")
	return c
}

// plainWord is a path that no shell takes for anything else.
var plainWord = regexp.MustCompile(`^[\w./-]+$`)

// shellWord is a path as a shell takes it.
func shellWord(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// newJob makes a job's folder, all of it or nothing.
func newJob(dir, replace string) error {
	if dir == "" {
		return usagef("the folder's name is empty; name one that is to be made")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("%s: %w; name the folder by its full path", dir, err)
	}
	project := scaffold.Project{Name: filepath.Base(absolute)}
	if err := scaffold.CheckName(project.Name); err != nil {
		return usageError{err}
	}
	if replace == "" {
		project.Version, err = publishedVersion(thisRelease().Version)
	} else {
		err = useClone(&project, absolute, replace)
	}
	if err != nil {
		return err
	}
	files, err := scaffold.Files(project)
	if err != nil {
		return err
	}
	return writeProject(dir, files)
}

// release versions, and those of commits that are not dirty.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// publishedVersion is the version of Sluice that a job can require, if this
// command was built from one.
func publishedVersion(version string) (string, error) {
	if !published.MatchString(version) {
		return "", usagef("this command is version %s, which is not published, so a job can't require it; name the clone that it was built from: sluice new DIR --replace FOLDER", version)
	}
	return version, nil
}

// useClone makes a project use a clone, with the modules that the clone needs.
func useClone(p *scaffold.Project, dir, clone string) error {
	mod, err := os.ReadFile(filepath.Join(clone, "go.mod"))
	if err != nil {
		return usagef("--replace %s: %w; name the folder with Sluice's go.mod", clone, err)
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	if strings.TrimSpace(first) != "module "+sluiceModule {
		return usagef("--replace %s: its go.mod begins with %.80q; name the folder of the module %s", clone, first, sluiceModule)
	}
	p.Version, p.Requires = "v0.0.0", requiresOf(string(mod))
	if p.Sums, err = os.ReadFile(filepath.Join(clone, "go.sum")); err != nil {
		return fmt.Errorf("--replace %s: %w; clone it again", clone, err)
	}
	if p.Replace, err = replacement(dir, clone); err != nil {
		return fmt.Errorf("--replace %s: %w; name it by its full path", clone, err)
	}
	return nil
}

// required is a line of go.mod that names a module and its version.
var required = regexp.MustCompile(`^\t([^\s"]+) (v[^\s"]+)( // indirect)?$`)

// requiresOf are the modules that a go.mod requires, for a module that requires
// that one.
func requiresOf(mod string) (requires []string) {
	for line := range strings.Lines(mod) {
		if m := required.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			requires = append(requires, m[1]+" "+m[2]+" // indirect")
		}
	}
	slices.Sort(requires)
	return requires
}

// replacement is the path of a clone as the go.mod in dir has it: a relative one
// as it was given, seen from there.
func replacement(dir, clone string) (string, error) {
	if filepath.IsAbs(clone) {
		return filepath.ToSlash(filepath.Clean(clone)), nil
	}
	absolute, err := filepath.Abs(clone)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(dir, absolute)
	if err != nil {
		return "", err
	}
	if relative = filepath.ToSlash(relative); !strings.HasPrefix(relative, "../") && relative != ".." {
		relative = "./" + relative
	}
	return relative, nil
}

// writeProject writes the files into a folder that it makes, or that is empty.
// If that fails, it removes what it has made.
func writeProject(dir string, files []scaffold.File) (err error) {
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range slices.Backward(made) {
			if removing := os.Remove(name); removing != nil {
				err = fmt.Errorf("%w; nor could what was made be removed: %w", err, removing)
			}
		}
	}()
	if err := checkEmpty(dir); err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		folders, err := makeFolders(filepath.Dir(name))
		made = append(made, folders...)
		if err == nil {
			err = writeNew(name, f.Content, &made)
		}
		if err != nil {
			return fmt.Errorf("%s can't be made: %w; name another folder, or make room for it", path.Join(dir, f.Path), err)
		}
	}
	return nil
}

// checkEmpty refuses a folder that has something in it.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s can't be looked into: %w; name another folder", dir, err)
	case len(entries) > 0:
		return usagef("%s is not empty: it has %s; name a folder that is new or empty", dir, entries[0].Name())
	}
	return nil
}

// makeFolders makes a folder and those above it, and returns what was not there,
// from above.
func makeFolders(dir string) (made []string, err error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if made, err = makeFolders(filepath.Dir(dir)); err != nil {
		return made, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return made, err
	}
	return append(made, dir), nil
}

func writeNew(name string, content []byte, made *[]string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	*made = append(*made, name)
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
