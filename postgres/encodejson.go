package postgres

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/sluicestream/sluice/schema"
)

// jsonbVersion is the first byte of jsonb's binary form.
const jsonbVersion = 1

// The bounds that jsonb sets: nesting by the server's stack, and a number's
// digits by numeric.
const (
	maxJSONDepth  = 1000
	maxJSONDigits = 16_000
)

// jsonEncoder writes JSON: texts and bytes that are JSON already, and what has
// no type of its own.
func jsonEncoder(s *schema.Schema, binary bool) (encoder, bool) {
	transcode := schema.JSON(s)
	given := s.Kind() == schema.KindString || s.Kind() == schema.KindBytes && s.Logical() == ""
	if !given && isScalar(s) {
		return encoder{}, false
	}
	return encoder{func(dst, src []byte, pos int) ([]byte, int, error) {
		dst, start := begin(dst)
		if binary {
			dst = append(dst, jsonbVersion)
		}
		from := len(dst)
		if given {
			raw, next, err := readBytes(src, pos)
			if err != nil {
				return dst, 0, err
			}
			dst, pos = append(dst, raw...), next
			if err := checkJSON(raw, binary); err != nil {
				return dst, 0, err
			}
		} else {
			out, rest, err := transcode(dst, src[min(pos, len(src)):])
			if err != nil {
				return dst, 0, err
			}
			dst, pos = out, len(src)-len(rest)
			if binary && holdsNUL(dst[from:]) {
				return dst, 0, errJSONNUL
			}
		}
		return end(dst, start), pos, checkSize(len(dst) - from)
	}, true}, true
}

const errJSONNUL = misfit("jsonb can't hold the character NUL in a text; the tag type=json can")

// checkJSON tells whether PostgreSQL takes a text as JSON.
func checkJSON(text []byte, binary bool) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return misfit("a text of PostgreSQL can't hold the character NUL")
	}
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for values := 0; ; {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && values == 1:
			if binary && holdsNUL(text) {
				return errJSONNUL
			}
			return nil
		case errors.Is(err, io.EOF):
			return misfit("an empty text is no JSON")
		case err != nil:
			return misfitf("the text is no JSON: %v", err)
		case values == 1:
			return misfitf("the text is no JSON: something stands behind it, at byte %d", d.InputOffset())
		case d.StackDepth() > maxJSONDepth:
			return misfitf("the JSON is nested more than %d deep", maxJSONDepth)
		case binary && token.Kind() == '0' && !fitsNumeric(token.String()):
			return misfitf("the number %.40s in the JSON is out of range for jsonb", token.String())
		}
		if d.StackDepth() == 0 {
			values++
		}
	}
}

// fitsNumeric tells whether a number of JSON has few enough digits.
func fitsNumeric(number string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil {
			return false
		}
	}
	return len(mantissa)+max(power, -power) <= maxJSONDigits
}

// holdsNUL tells whether a JSON text has the escape of NUL.
func holdsNUL(text []byte) bool {
	for {
		i := bytes.Index(text, []byte(`\u0000`))
		if i < 0 {
			return false
		}
		before := i
		for before > 0 && text[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 {
			return true
		}
		text = text[i+1:]
	}
}
