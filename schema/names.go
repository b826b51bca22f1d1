package schema

import (
	"fmt"
	"strings"
)

// maxName bounds names; they stand in every file and error.
const maxName = 1024

// CheckName returns an error if name can't be the name of a record, an enum or
// a fixed: letters, digits and underscores, not beginning with a digit; several
// such parts may be joined by dots.
func CheckName(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		if err := checkSimpleName(part); err != nil {
			return err
		}
	}
	return nil
}

func checkSimpleName(name string) error {
	if name == "" {
		return fmt.Errorf("a name is empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("a name of %d bytes, the most is %d", len(name), maxName)
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%q is no name: letters, digits and underscores, no digit first", name)
		}
	}
	return nil
}

func mustName(name string) {
	if err := CheckName(name); err != nil {
		panic("schema: " + err.Error())
	}
}

// zeroSymbol is how the empty string, which is no Avro symbol, is written.
const zeroSymbol = "_"

func checkSymbols(symbols []string) error {
	if len(symbols) == 0 {
		return fmt.Errorf("no symbols")
	}
	seen := map[string]bool{}
	for _, s := range symbols {
		written := s
		if s == "" {
			written = zeroSymbol
		}
		if err := checkSimpleName(written); err != nil {
			return err
		}
		if seen[written] {
			return fmt.Errorf("the symbol %q stands twice", s)
		}
		seen[written] = true
	}
	return nil
}

// namespace returns what stands before the last dot of a full name.
func namespace(full string) string {
	return full[:max(strings.LastIndexByte(full, '.'), 0)]
}
