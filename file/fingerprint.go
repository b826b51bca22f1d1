package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// fingerprinted is how many of a file's first bytes tell it from another: more
// than a header line, and one page to read.
const fingerprinted = 4096

// fingerprint is the identity of a file that begins with head.
func fingerprint(head []byte) string {
	sum := sha256.Sum256(head)
	return strconv.Itoa(len(head)) + ":" + hex.EncodeToString(sum[:])
}

// fingerprintLength is the number of bytes that an identity was made from.
func fingerprintLength(identity string) (int, error) {
	length, sum, ok := strings.Cut(identity, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n > fingerprinted || len(sum) != hex.EncodedLen(sha256.Size) {
		return 0, fmt.Errorf("%q is not a file's fingerprint: expected \"length:sha256\" with a length up to %d", identity, fingerprinted)
	}
	return n, nil
}
