package epoch

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxEdits bounds the entries that the edits of one epoch delete: a manifest stays
// small. A request that names more takes several epochs, one behind the other without
// records in between.
const MaxEdits = 1000

// MaxAsked bounds the entries that a request names: some 3 MB of an object.
const MaxAsked = 20_000

// MaxUnmet bounds the requests of which a manifest says that they were not met: the
// newest. Of one that is older than all of as many, it isn't known.
const MaxUnmet = 1000

// Unmet is a request that was called done and was not met: one to forget that did not
// delete everything that it names, or one to drain up to offsets that can't be. Every later
// manifest of the branch says so too: the entries may live on under another name or key,
// however long ago that was.
type Unmet struct {
	Request uint64 `json:"request"`
	// States are those whose entries it has not met: each has other keys than when it was
	// asked, or is part of another state, or it isn't known.
	States []string `json:"states,omitempty"`
	// Why says why a request to drain up to offsets was not met.
	Why string `json:"why,omitempty"`
	// GivenUp tells that somebody took the request back.
	GivenUp bool `json:"given_up,omitzero"`
}

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
