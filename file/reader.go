package file

import (
	"context"
	"fmt"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// reader is an open source: the files of a pattern.
type reader struct {
	env      *env.Env
	pattern  pattern
	settings *settings
	form     form
	names    []string // as they were at the start, for good unless followed
}

func (r *reader) Bounded() bool { return !r.settings.follow }

func (r *reader) Close() error { return nil }

func (r *reader) Partitions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.settings.follow {
		return r.list()
	}
	return append([]string(nil), r.names...), nil
}

// list finds the files that there are.
func (r *reader) list() ([]string, error) {
	names, err := r.pattern.expand(r.env.Files)
	if err != nil || !r.settings.follow {
		return names, err
	}
	for _, name := range names {
		if err := r.checkFollowed(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// checkFollowed refuses to follow a file that can't be read on where it ended.
func (r *reader) checkFollowed(name string) error {
	if r.settings.follow && isPacked(name) {
		return fmt.Errorf("file %s can't be followed, since it is packed; unpack it, or read it without file.Follow", r.pattern.path(name))
	}
	return nil
}

func (r *reader) Partition(ctx context.Context, name string, from connector.Offset) (connector.Partition, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.pattern.matches(name) {
		return nil, fmt.Errorf("partition %q is no file of the pattern %q", name, r.pattern.text)
	}
	if err := r.checkFollowed(name); err != nil {
		return nil, err
	}
	p := &partition{
		name:     name,
		path:     r.pattern.path(name),
		env:      r.env,
		settings: r.settings,
		form:     r.form,
		splitter: splitter{quotes: r.form.quotes, comma: r.settings.comma},
		average:  firstAverage,
	}
	if err := p.open(from); err != nil {
		return nil, together(err, p.Close())
	}
	return p, nil
}
