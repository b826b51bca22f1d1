package codec

import (
	"fmt"
	"unicode/utf8"

	"github.com/sluicestream/sluice/connector"
)

// Codec makes values of type T from bytes, and bytes from values.
type Codec[T any] interface {
	// Name is the format's name: "json".
	Name() string
	// Parameters are the settings that matter to the values, for the job's
	// version.
	Parameters() []connector.Parameter
	// NewDecoder returns a function that decodes src into *v, which is zero.
	// Nothing in *v points into src afterwards. An error is a
	// *[connector.DecodeError]. One goroutine uses the function at a time.
	NewDecoder() func(src []byte, v *T) error
	// NewEncoder returns a function that appends *v to dst. After an error dst
	// is as it was. One goroutine uses the function at a time.
	NewEncoder() func(dst []byte, v *T) ([]byte, error)
}

// String returns the codec of plain text. Bytes that are not UTF-8 are an
// error, since no format that Sluice writes could carry them on.
func String() Codec[string] { return stringCodec{} }

type stringCodec struct{}

func (stringCodec) Name() string                      { return "string" }
func (stringCodec) Parameters() []connector.Parameter { return nil }

func (stringCodec) NewDecoder() func(src []byte, v *string) error {
	return func(src []byte, v *string) error {
		if !utf8.Valid(src) {
			at := invalidUTF8(src)
			return &connector.DecodeError{
				At:    int64(at),
				Cause: fmt.Errorf("text is not UTF-8: byte 0x%02x at %d; codec.Bytes takes any bytes", src[at], at),
			}
		}
		*v = string(src)
		return nil
	}
}

func (stringCodec) NewEncoder() func(dst []byte, v *string) ([]byte, error) {
	return func(dst []byte, v *string) ([]byte, error) {
		if !utf8.ValidString(*v) {
			return dst, fmt.Errorf("text is not UTF-8: byte %d of %d", invalidUTF8([]byte(*v)), len(*v))
		}
		return append(dst, *v...), nil
	}
}

// invalidUTF8 is the index of the first byte that is not UTF-8.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}

// Bytes returns the codec that takes bytes as they are.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type bytesCodec struct{}

func (bytesCodec) Name() string                      { return "bytes" }
func (bytesCodec) Parameters() []connector.Parameter { return nil }

func (bytesCodec) NewDecoder() func(src []byte, v *[]byte) error {
	return func(src []byte, v *[]byte) error {
		*v = append(make([]byte, 0, len(src)), src...)
		return nil
	}
}

func (bytesCodec) NewEncoder() func(dst []byte, v *[]byte) ([]byte, error) {
	return func(dst []byte, v *[]byte) ([]byte, error) { return append(dst, *v...), nil }
}
