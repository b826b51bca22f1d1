package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/sluicestream/sluice/connector"
)

// open begins to read a file at an offset, once the file has turned out to be
// the one that the offset was taken from.
func (p *partition) open(from connector.Offset) error {
	if from.Next < 0 {
		return fmt.Errorf("file %s: offset %d lies before the file's beginning", p.path, from.Next)
	}
	if err := p.openContent(); err != nil {
		return err
	}
	if from.Next > 0 || from.Identity != "" {
		if err := p.resume(from); err != nil {
			return err
		}
	}
	return p.updateEnd()
}

func (p *partition) openContent() error {
	f, err := p.env.Files.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p.changed("a file", "none")
	}
	if err != nil {
		return err
	}
	if !isPacked(p.name) {
		p.content = &plain{file: f}
		return nil
	}
	if p.content, err = newPacked(f); err != nil {
		return fmt.Errorf("file %s: %w", p.path, together(err, f.Close()))
	}
	return nil
}

// resume goes to an offset that was given out before.
func (p *partition) resume(from connector.Offset) error {
	if err := p.identify(from); err != nil {
		return err
	}
	if p.form.header && from.Next > 0 {
		if err := p.rereadHeader(); err != nil {
			return err
		}
	}
	return p.seek(from.Next)
}

// identify reads the file's first bytes and compares them with the identity.
func (p *partition) identify(from connector.Offset) error {
	length := 0
	if from.Identity != "" {
		var err error
		if length, err = fingerprintLength(from.Identity); err != nil {
			return fmt.Errorf("file %s: %w", p.path, err)
		}
	}
	want := max(length, int(min(from.Next, fingerprinted)))
	if err := p.readCarry(want); err != nil {
		return err
	}
	if len(p.carry) < want {
		return p.changed(fmt.Sprintf("at least %d bytes", max(from.Next, int64(want))), fmt.Sprintf("%d", len(p.carry)))
	}
	if from.Identity != "" {
		if found := fingerprint(p.carry[:length]); found != from.Identity {
			return p.changed("a beginning with fingerprint "+from.Identity, found)
		}
	}
	p.head = append(p.head[:0], p.carry[:min(from.Next, fingerprinted)]...)
	return nil
}

// rereadHeader reads the header line anew, for an offset behind it.
func (p *partition) rereadHeader() error {
	for {
		end := p.splitter.end(p.carry, 0)
		if end < 0 {
			had := len(p.carry)
			if err := p.readCarry(had + max(had, fingerprinted)); err != nil {
				return err
			}
			if len(p.carry) > had && len(p.carry) <= p.settings.maxLine {
				continue
			}
			return p.changed("a header line", fmt.Sprintf("none in %d bytes", len(p.carry)))
		}
		p.splitter.reset()
		return p.takeHeader(trimMark(trimNewline(p.carry[:end]), 0))
	}
}

// seek moves to an offset, of which it makes sure that a record begins there:
// it would not if a last line without a newline was read and has grown since.
func (p *partition) seek(next int64) error {
	if next == 0 {
		return nil
	}
	before := next - 1 // the newline before the record
	if have := int64(len(p.carry)); before < have {
		p.carry = p.carry[before:]
	} else {
		p.carry = p.carry[:0]
		if err := p.content.skip(before - have); err != nil {
			return p.readFailed(next, err)
		}
	}
	if err := p.readCarry(2); err != nil { // the newline, and what follows
		return err
	}
	if len(p.carry) == 0 {
		return p.readFailed(next, io.EOF)
	}
	p.unended = p.carry[0] != '\n'
	p.carry = append([]byte(nil), p.carry[1:]...)
	p.at = next
	return p.checkEnded(p.carry)
}

// checkEnded makes sure that the record before rest ended there.
func (p *partition) checkEnded(rest []byte) error {
	if !p.unended || len(rest) == 0 {
		return nil
	}
	if rest[0] != '\n' && rest[0] != '\r' {
		return p.changed(fmt.Sprintf("a record that begins at byte %d", p.at), "one that goes on there: the last line has grown since it was read")
	}
	p.unended = false
	return nil
}

func (p *partition) readFailed(next int64, err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("file %s: %w", p.path, err)
	}
	size, sizeErr := p.content.size()
	if sizeErr != nil {
		return fmt.Errorf("file %s: %w", p.path, sizeErr)
	}
	return p.changed(fmt.Sprintf("at least %d bytes", next), fmt.Sprintf("%d", size))
}

// readCarry reads until the carry holds n bytes, or the file ends.
func (p *partition) readCarry(n int) error {
	for len(p.carry) < n {
		had := len(p.carry)
		p.carry = append(p.carry, make([]byte, n-had)...)
		read, err := p.content.Read(p.carry[had:])
		p.carry = p.carry[:had+read]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", p.path, err)
		}
	}
	return nil
}

// takeHeader keeps the header line.
func (p *partition) takeHeader(line []byte) error {
	header := bytes.Clone(line)
	if p.form.checkHeader != nil {
		if err := p.form.checkHeader(header); err != nil {
			return fmt.Errorf("file %s: %w", p.path, err)
		}
	}
	p.preamble = header
	return nil
}
