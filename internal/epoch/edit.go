package epoch

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxEdits bounds the entries that a request names, and those that the edits of
// one epoch delete unless one request alone has as many: a manifest stays small.
const MaxEdits = 1000

// EditHash is what stands for a key in an edit: the sha256, in hexadecimal, over
// the job's id and the key's Avro encoding. So neither a request nor a manifest
// tells the key. Whoever knows the job's id can still try keys one by one; of a
// few possible ones that finds the right one.
func EditHash(jobID string, key []byte) string {
	h := sha256.New()
	h.Write([]byte(jobID))
	h.Write([]byte{0}) // an id has none
	h.Write(key)
	return hex.EncodeToString(h.Sum(nil))
}
