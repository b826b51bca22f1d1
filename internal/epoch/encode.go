package epoch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
)

// Format is the version of the format that this build writes, in every object.
const Format = 1

// MaxObject bounds the bytes of a manifest or record, written or read. Manifests
// of ordinary jobs have some kilobytes; thousands of partitions make megabytes.
const MaxObject = 16 << 20

// The envelope, the same in every format: an object in one line that begins
// with its format and ends with the sha256 of all that stands before the sum.
const (
	sumBegin = `,"sum":"`
	sumEnd   = "\"}\n"
	sumBytes = len(sumBegin) + 2*sha256.Size + len(sumEnd)
)

// FormatError says that an object was written by a later release.
type FormatError struct {
	// Object is its name in the store.
	Object string
	// Format is what it was written by, Newest what this build reads.
	Format, Newest int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s was written by format %d, this build reads up to %d. Use the release that wrote it, or a later one.", e.Object, e.Format, e.Newest)
}

// Stored is any of the types that are stored as objects of their own.
type Stored interface {
	Manifest | LiveRecord | BranchFile | Layout | JobFile | Version | Functions | Floor | Pin | Savepoint | Heartbeat | Request | Drain
}

// ladder holds, for each format that was ever released, how its objects become
// those of today. A new format adds a rung and keeps those below.
func ladder[T Stored]() map[int]func([]byte) (T, error) {
	return map[int]func([]byte) (T, error){
		1: strict[T],
	}
}

// strict reads an object that has exactly the fields of T.
func strict[T Stored](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v, json.RejectUnknownMembers(true))
	return v, err
}

// Hash is the sha256 of an object's bytes, in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Encode returns the manifest's bytes: JSON in one line, fields in fixed order,
// maps sorted, with a sum of itself at the end. A name or a value that is not
// UTF-8 is an error, and so are more than [MaxObject] bytes.
func (m Manifest) Encode() ([]byte, error) { return encode(m) }

func encode[T Stored](v T) ([]byte, error) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	body = body[:len(body)-1] // the brace, which comes back behind the sum
	sum := Hash(body)
	data := append(append(append(body, sumBegin...), sum...), sumEnd...)
	if len(data) > MaxObject {
		return nil, fmt.Errorf("it would have %d bytes, the limit is %d", len(data), MaxObject)
	}
	return data, nil
}

// Decode reads a stored object, whatever format it was written by. A later one is
// a [FormatError]; anything that is not as it was written is another error.
func Decode[T Stored](data []byte) (T, error) {
	var none T
	body, err := open(data)
	if err != nil {
		return none, err
	}
	format, err := formatOf(body)
	if err != nil {
		return none, err
	}
	read, ok := ladder[T]()[format]
	if !ok && format > Format {
		return none, &FormatError{Object: "the object", Format: format, Newest: Format}
	}
	if !ok {
		return none, fmt.Errorf("there never was a format %d", format)
	}
	return read(body)
}

// CheckSum finds whether an object of any kind is as it was written, by its sum.
func CheckSum(data []byte) error {
	_, err := open(data)
	return err
}

// open checks the envelope and returns the object without its sum.
func open(data []byte) ([]byte, error) {
	switch {
	case len(data) == 0:
		return nil, errors.New("it is empty")
	case len(data) > MaxObject:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(data), MaxObject)
	case len(data) < sumBytes || !bytes.HasSuffix(data, []byte(sumEnd)):
		return nil, fmt.Errorf("it ends, after %d bytes, without its sum", len(data))
	}
	body, seal := data[:len(data)-sumBytes], data[len(data)-sumBytes:]
	if !bytes.HasPrefix(seal, []byte(sumBegin)) {
		return nil, fmt.Errorf("it ends, after %d bytes, without its sum", len(data))
	}
	expected, found := string(seal[len(sumBegin):len(seal)-len(sumEnd)]), Hash(body)
	if expected != found {
		return nil, fmt.Errorf("its sum is %s, that of its bytes %s", expected, found)
	}
	return append(bytes.Clone(body), '}'), nil
}

// formatOf reads the format alone, of an object that may have any other fields.
func formatOf(body []byte) (int, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return 0, errors.New("it is no JSON object")
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '"' || tok.String() != "format" {
		return 0, errors.New("it doesn't begin with its format")
	}
	var format int
	if err := json.UnmarshalDecode(dec, &format); err != nil {
		return 0, fmt.Errorf("its format is no number: %w", err)
	}
	return format, nil
}
