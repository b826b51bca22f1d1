package file

import "fmt"

// ChangedError says that a file is not any more what was read before: it was
// cut short, replaced or removed.
type ChangedError struct {
	// File is its path.
	File string
	// Expected and Found say what it should be and is.
	Expected, Found string
}

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("file %s has changed: expected %s, found %s; put the file back as it was, or give the new one another name, under which it is read from its beginning",
		e.File, e.Expected, e.Found)
}

// together makes one error, of one line, of several; those that are nil are left
// out.
func together(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// LineError says that a line is longer than [MaxLine] allows.
type LineError struct {
	// File is the path, Offset where the line begins, Max what is allowed.
	File   string
	Offset int64
	Max    int
	// OpenQuote tells that a quote is open there, which would explain it.
	OpenQuote bool
}

// Error implements error.
func (e *LineError) Error() string {
	s := fmt.Sprintf("file %s: the line at byte %d has more than %d bytes", e.File, e.Offset, e.Max)
	if e.OpenQuote {
		s += ", with a quote left open"
	}
	return s + "; allow longer ones with file.MaxLine, or mend the file"
}
