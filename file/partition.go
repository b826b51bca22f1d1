package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

const (
	// What Next takes a batch's limits for that are not given.
	defaultLimit      = 1024
	defaultLimitBytes = 1 << 20
	// leastRead is the fewest bytes worth a read.
	leastRead = 4096
	// firstAverage is a record's length before any has been seen.
	firstAverage = 256
)

// partition is a file that is being read.
//
// What is read goes into the batch's own buffer, where the records stay. The
// beginning of a record whose end isn't there yet, or that is one too many, is
// carried over to the next batch.
type partition struct {
	name, path string
	env        *env.Env
	settings   *settings
	form       form

	content  content // nil once everything has been read
	preamble []byte
	head     []byte       // the first bytes of what was given out, for the identity
	identity string       // of head, if it is as long as that says
	carry    []byte       // read and not given out yet
	at       int64        // the offset of the carry's first byte
	ended    bool         // nothing comes behind the carry
	unended  bool         // the record before the carry had no newline
	end      atomic.Int64 // of the file, as of the last look
	whole    atomic.Int64 // behind its last newline, where it is followed

	splitter splitter
	average  int // length of a record, lately
}

// Next implements [connector.Partition].
func (p *partition) Next(ctx context.Context, b *connector.Batch, until int64) error {
	if b.Limit <= 0 {
		b.Limit = defaultLimit
	}
	if b.LimitBytes <= 0 {
		b.LimitBytes = defaultLimitBytes
	}
	b.Partition, b.Records = p.name, b.Records[:0]
	if until >= 0 && p.at >= until {
		b.To, b.Preamble = p.offset(), p.preamble
		return io.EOF
	}
	if p.content == nil && !p.ended {
		return fmt.Errorf("file %s: %w", p.path, fs.ErrClosed)
	}
	b.Buffer = append(b.Buffer[:0], p.carry...)
	p.carry = p.carry[:0]
	p.splitter.reset()
	want := min(max(b.Limit*p.average, leastRead), max(b.LimitBytes, leastRead))
	for {
		err := ctx.Err()
		if err == nil {
			err = p.fill(b, want)
		}
		used := 0
		if err == nil {
			used, err = p.split(b, until)
		}
		if err == nil && used == 0 {
			if err = p.more(ctx, b); err == nil {
				want = max(want, min(2*len(b.Buffer), p.settings.maxLine+3))
				continue
			}
		}
		if err != nil {
			b.Records = b.Records[:0]
		}
		p.finish(b, used)
		return err
	}
}

// fill reads until the buffer holds want bytes or nothing comes any more.
func (p *partition) fill(b *connector.Batch, want int) error {
	for !p.ended && len(b.Buffer) < want {
		b.Buffer = slices.Grow(b.Buffer, want-len(b.Buffer))
		had := len(b.Buffer)
		n, err := p.content.Read(b.Buffer[had:want])
		b.Buffer = b.Buffer[:had+n]
		switch {
		case errors.Is(err, io.EOF):
			return p.atEnd(b)
		case err != nil:
			return fmt.Errorf("file %s: %w", p.path, err)
		}
	}
	return nil
}

// atEnd is what there is to do where the file ends for now.
func (p *partition) atEnd(b *connector.Batch) error {
	if err := p.updateEnd(); err != nil {
		return err
	}
	read := p.at + int64(len(b.Buffer))
	if !isPacked(p.name) && p.end.Load() < read {
		return p.changed(fmt.Sprintf("at least %d bytes", read), fmt.Sprintf("%d", p.end.Load()))
	}
	if p.settings.follow {
		return nil
	}
	p.ended = true
	p.end.Store(read)
	content := p.content
	p.content = nil
	if err := content.Close(); err != nil {
		return fmt.Errorf("file %s: %w", p.path, err)
	}
	return nil
}

// more tells what to do while no record is complete: it returns nil if the file
// may have more by now, io.EOF if it ends.
func (p *partition) more(ctx context.Context, b *connector.Batch) error {
	if len(b.Buffer) > p.settings.maxLine+len("\r\n") {
		return p.tooLong(p.at)
	}
	if p.ended {
		return io.EOF
	}
	read := p.at + int64(len(b.Buffer))
	if !p.settings.follow || p.end.Load() > read {
		return nil
	}
	if err := env.Pause(ctx, p.env.Clock, p.settings.poll); err != nil {
		return err
	}
	return p.look(b)
}

// look sees whether a followed file is still the one under its name. If another
// has come there that begins as this one did, which is what a program does that
// writes its whole file anew, that one is read on.
func (p *partition) look(b *connector.Batch) error {
	named, err := p.env.Files.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p.changed(fmt.Sprintf("at least %d bytes", p.at+int64(len(b.Buffer))), "no file")
	}
	if err != nil {
		return err
	}
	open, err := p.content.(*plain).file.Stat()
	if err != nil {
		return fmt.Errorf("file %s: %w", p.path, err)
	}
	if named.Size() == open.Size() && named.ModTime().Equal(open.ModTime()) {
		return nil
	}
	from := p.offset()
	if err := p.content.Close(); err != nil {
		return fmt.Errorf("file %s: %w", p.path, err)
	}
	p.content, p.preamble, p.carry, p.at = nil, nil, p.carry[:0], 0
	p.whole.Store(0) // another file may have its newlines elsewhere
	if err := p.open(from); err != nil {
		return err
	}
	b.Buffer = append(b.Buffer[:0], p.carry...)
	p.carry = p.carry[:0]
	p.splitter.reset()
	return nil
}

// finish hands out the first used bytes of the buffer and keeps the rest.
func (p *partition) finish(b *connector.Batch, used int) {
	if missing := fingerprinted - len(p.head); missing > 0 && used > 0 {
		p.head = append(p.head, b.Buffer[:min(used, missing)]...)
		p.identity = ""
	}
	if n := len(b.Records); n > 0 {
		p.average = max(1, (3*p.average+used/n)/4)
	}
	p.carry = append(p.carry[:0], b.Buffer[used:]...)
	p.at += int64(used)
	b.To = p.offset()
	b.Preamble = p.preamble
}

// offset is where the next record begins.
func (p *partition) offset() connector.Offset {
	if p.at == 0 {
		return connector.Offset{}
	}
	if p.identity == "" {
		p.identity = fingerprint(p.head)
	}
	return connector.Offset{Next: p.at, Identity: p.identity}
}

func (p *partition) updateEnd() error {
	if p.content == nil {
		return nil
	}
	size, err := p.content.size()
	if err != nil {
		return fmt.Errorf("file %s: %w", p.path, err)
	}
	p.end.Store(size)
	if f, ok := p.content.(*plain); ok && p.settings.follow {
		whole, err := f.lastNewline(max(p.whole.Load(), p.at), size)
		if err != nil {
			return fmt.Errorf("file %s: %w", p.path, err)
		}
		p.whole.Store(whole)
	}
	return nil
}

// End implements [connector.Partition]. In a file that is followed it is behind
// the last newline: what follows that is no record yet. Of a packed file it is what the file
// says of itself, until it has been read to its end. It may be called while
// Next runs.
func (p *partition) End() int64 {
	if p.settings.follow && !isPacked(p.name) {
		return p.whole.Load()
	}
	return p.end.Load()
}

// Close implements [connector.Partition].
func (p *partition) Close() error {
	if p.content == nil {
		return nil
	}
	content := p.content
	p.content = nil
	return content.Close()
}

func (p *partition) tooLong(offset int64) error {
	return &LineError{File: p.path, Offset: offset, Max: p.settings.maxLine, OpenQuote: p.splitter.inside()}
}

func (p *partition) changed(expected, found string) error {
	return &ChangedError{File: p.path, Expected: expected, Found: found}
}
