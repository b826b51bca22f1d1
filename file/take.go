package file

import (
	"fmt"
	"slices"

	"github.com/sluicestream/sluice/connector"
)

// split puts the buffer's complete records into the batch, as far as its limits
// and until allow, and returns how many of the buffer's bytes they take. What
// is wrong behind good records is told once these have been taken.
func (p *partition) split(b *connector.Batch, until int64) (used int, err error) {
	if err := p.checkEnded(b.Buffer); err != nil {
		return 0, err
	}
	size := 0
	for len(b.Records) < b.Limit {
		start := p.at + int64(used)
		if until >= 0 && start >= until {
			return used, nil
		}
		end := p.endOfRecord(b, used, until)
		if end < 0 {
			return used, nil
		}
		line := trimNewline(b.Buffer[used:end])
		if len(line) > p.settings.maxLine {
			if used > 0 {
				return used, nil
			}
			return 0, p.tooLong(start)
		}
		if until >= 0 && p.at+int64(end) > until {
			// The newline alone may lie behind it: of a last line that had none.
			if end = used + len(line); p.at+int64(end) != until {
				return 0, p.changed(fmt.Sprintf("a record that ends at byte %d", until), fmt.Sprintf("one from %d to %d", start, p.at+int64(end)))
			}
		}
		value := trimMark(line, start)
		switch {
		case start == 0 && p.form.header:
			if err := p.takeHeader(value); err != nil {
				return 0, err
			}
		case len(value) == 0: // an empty line
		case size+len(value) > b.LimitBytes && len(b.Records) > 0:
			return used, nil
		default:
			size += len(value)
			addRecord(b, start, value)
		}
		used = end
		p.unended = b.Buffer[end-1] != '\n'
	}
	return used, nil
}

// endOfRecord is the index behind the record that begins at used, or -1 if its
// end may still come.
func (p *partition) endOfRecord(b *connector.Batch, used int, until int64) int {
	if end := p.splitter.end(b.Buffer, used); end >= 0 {
		return end
	}
	have := p.at + int64(len(b.Buffer))
	last := p.ended || until == have && p.end.Load() <= have
	if !last || used == len(b.Buffer) {
		return -1
	}
	return len(b.Buffer)
}

func addRecord(b *connector.Batch, offset int64, value []byte) {
	n := len(b.Records)
	b.Records = slices.Grow(b.Records, 1)[:n+1]
	r := &b.Records[n]
	r.Offset, r.Time, r.Key, r.Value, r.Headers = offset, connector.NoTime, nil, value, nil
}
