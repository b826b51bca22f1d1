package operate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel bounds a label's value, in bytes: keys and partitions may be as long
// as a record.
const maxLabel = 80

// label makes any text fit for a label: valid, printable and at most maxLabel
// bytes. A text that has to be changed ends in a piece of its hash, so that two
// of them stay two.
func label(text string) string {
	if len(text) <= maxLabel && printable(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	end := "~" + hex.EncodeToString(sum[:4])
	var b strings.Builder
	for _, r := range text {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			r = '?'
		}
		if b.Len()+utf8.RuneLen(r)+len(end) > maxLabel {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + end
}

func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}
