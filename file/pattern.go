package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicestream/sluice/env"
)

// maxPartitions bounds how many files one pattern may name: each is a
// partition that every manifest lists.
const maxPartitions = 100_000

// pattern is a glob, split where its fixed folder ends.
type pattern struct {
	text   string
	folder string   // without wildcards
	parts  []string // the rest, at least one part
}

func parsePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("no file named: the pattern is empty")
	}
	clean := filepath.Clean(text)
	folder, last := filepath.Split(clean)
	parts := []string{last}
	for hasWildcard(folder) {
		var part string
		folder, part = filepath.Split(filepath.Clean(folder))
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	for _, part := range parts {
		if _, err := filepath.Match(part, ""); err != nil {
			return pattern{}, fmt.Errorf("pattern %q: %q is malformed: a bracket or a backslash is left open", text, part)
		}
	}
	if folder == "" {
		folder = "."
	}
	return pattern{text, filepath.Clean(folder), parts}, nil
}

func hasWildcard(s string) bool { return strings.ContainsAny(s, `*?[\`) }

// single tells whether the pattern is one file's name.
func (p *pattern) single() bool { return len(p.parts) == 1 && !hasWildcard(p.parts[0]) }

// path is the path of the file that a partition's name stands for.
func (p *pattern) path(name string) string {
	return filepath.Join(p.folder, filepath.FromSlash(name))
}

// matches tells whether a partition's name fits the pattern.
func (p *pattern) matches(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != len(p.parts) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return false
	}
	for i, part := range parts {
		if !matchesPart(p.parts[i], part) {
			return false
		}
	}
	return true
}

// matchesPart follows shells in that a leading wildcard passes over hidden
// names, such as the temporary files of whoever writes there.
func matchesPart(pattern, name string) bool {
	if !hasWildcard(pattern) {
		return pattern == name
	}
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil
}

// expand lists the names of the files that fit, in order.
func (p *pattern) expand(files env.FS) ([]string, error) {
	names, err := p.walk(files, nil, "", p.parts)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// walk appends to names what lies below the folder named at and fits parts.
func (p *pattern) walk(files env.FS, names []string, at string, parts []string) ([]string, error) {
	found, err := p.list(files, at, parts[0])
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		below := f.name
		if at != "" {
			below = at + "/" + f.name
		}
		kind, err := p.kind(files, below, f.kind)
		switch {
		case err != nil:
			return nil, err
		case len(parts) > 1 && kind.IsDir():
			if names, err = p.walk(files, names, below, parts[1:]); err != nil {
				return nil, err
			}
		case len(parts) == 1 && kind.IsRegular():
			if err := p.checkName(below); err != nil {
				return nil, err
			}
			names = append(names, below)
		}
		if len(names) > maxPartitions {
			return nil, fmt.Errorf("pattern %q fits more than %d files, each of which would be a partition", p.text, maxPartitions)
		}
	}
	return names, nil
}

// checkName refuses the name of a file that can't be a partition's: manifests
// hold text only, and a name is printed in many a line.
func (p *pattern) checkName(name string) error {
	fault := ""
	switch {
	case !utf8.ValidString(name):
		fault = "is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		fault = "holds a character that can't be printed"
	default:
		return nil
	}
	return fmt.Errorf("the name of the file %q, which fits the pattern %q, %s; rename it, or name a pattern that it doesn't fit", p.path(name), p.text, fault)
}

// candidate is a name in a folder, and what its folder says it is.
type candidate struct {
	name string
	kind fs.FileMode
}

// unknown is a candidate's kind that only the file itself can tell.
const unknown = fs.ModeSymlink

// kind is what a candidate is, a link's target looked up.
func (p *pattern) kind(files env.FS, name string, kind fs.FileMode) (fs.FileMode, error) {
	if kind != unknown {
		return kind, nil
	}
	info, err := files.Stat(p.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed since, or a dangling link
		return fs.ModeIrregular, nil
	case err != nil:
		return 0, fmt.Errorf("pattern %q: %w", p.text, err)
	}
	return info.Mode().Type(), nil
}

// list returns the names in one folder that fit one part of the pattern.
func (p *pattern) list(files env.FS, at, part string) ([]candidate, error) {
	if !hasWildcard(part) {
		return []candidate{{part, unknown}}, nil
	}
	entries, err := files.ReadDir(p.path(at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", p.text, err)
	}
	var found []candidate
	for _, e := range entries {
		if matchesPart(part, e.Name()) {
			found = append(found, candidate{e.Name(), e.Type()})
		}
	}
	return found, nil
}
