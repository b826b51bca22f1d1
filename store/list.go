package store

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// List implements [Store]. It reads only the folders in which names of the
// listing can lie.
func (f *Folder) List(ctx context.Context, prefix, after string, limit int) ([]Listed, error) {
	folder, _, err := splitPrefix(prefix)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	l := listing{store: f, prefix: prefix, after: after, limit: limit}
	if err := l.walk(ctx, folder); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	return l.found, nil
}

type listing struct {
	store         *Folder
	prefix, after string
	limit         int
	found         []Listed
}

// walk adds what lies in a folder ("" or with a slash at its end). A folder
// sorts with the slash that follows it in the names of its objects: a.b comes
// before a/b, although a comes before a.b.
func (l *listing) walk(ctx context.Context, folder string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := l.store.fs.ReadDir(l.store.path(folder))
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	children := make([]child, 0, len(entries))
	for _, entry := range entries {
		c := child{name: folder + entry.Name(), entry: entry}
		if entry.IsDir() {
			c.name += "/"
		}
		if l.wants(c) {
			children = append(children, c)
		}
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.name, b.name) })
	for _, c := range children {
		if len(l.found) >= l.limit {
			return nil
		}
		if err := l.add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// child is an entry of a folder under its whole name, which ends in a slash if
// it is a folder itself.
type child struct {
	name  string
	entry fs.DirEntry
}

// wants tells whether the child is an object of the listing, or may hold some.
func (l *listing) wants(c child) bool {
	if c.entry.Name()[0] == '.' {
		return false
	}
	if c.entry.IsDir() {
		within := strings.HasPrefix(c.name, l.prefix) || strings.HasPrefix(l.prefix, c.name)
		return within && (c.name > l.after || strings.HasPrefix(l.after, c.name))
	}
	return c.entry.Type().IsRegular() && strings.HasPrefix(c.name, l.prefix) && c.name > l.after
}

func (l *listing) add(ctx context.Context, c child) error {
	if c.entry.IsDir() {
		return l.walk(ctx, c.name)
	}
	info, err := c.entry.Info()
	if absent(err) {
		return nil // deleted since the folder was read
	}
	if err != nil {
		return err
	}
	l.found = append(l.found, Listed{c.name, info.Size()})
	return nil
}
