package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a name, in bytes: what common file systems and S3 can hold.
const (
	maxName    = 1024
	maxElement = 255
)

// CheckName says whether name may name an object: elements of at most 255
// bytes of printable characters, divided by single slashes, none of them
// beginning with a dot, at most 1,024 bytes in all. The error matches [ErrName].
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is empty", ErrName)
	}
	if len(name) > maxName {
		return fmt.Errorf("%w: %q… has %d bytes, the limit is %d", ErrName, name[:40], len(name), maxName)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w: %q is not UTF-8", ErrName, name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: %q holds %U, which can't be printed", ErrName, name, r)
		}
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "":
			return fmt.Errorf("%w: %q has an empty element", ErrName, name)
		case element[0] == '.':
			return fmt.Errorf("%w: %q has an element that begins with a dot", ErrName, name)
		case len(element) > maxElement:
			return fmt.Errorf("%w: an element of %q… has %d bytes, the limit is %d", ErrName, name[:40], len(element), maxElement)
		}
	}
	return nil
}

// splitPrefix divides a listing's prefix behind its last slash, into the folder
// in which everything listed lies ("" or with a slash at its end) and the rest.
func splitPrefix(prefix string) (folder, rest string, err error) {
	cut := strings.LastIndexByte(prefix, '/') + 1
	folder, rest = prefix[:cut], prefix[cut:]
	if cut > 0 {
		err = CheckName(folder[:cut-1])
	}
	return folder, rest, err
}
