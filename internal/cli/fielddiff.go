package cli

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"slices"
)

// fieldDifferences appends the parts of two JSON values that differ, by their paths.
func fieldDifferences(all []fieldDifference, path string, old, now jsontext.Value) ([]fieldDifference, error) {
	switch {
	case bytes.Equal(old, now):
		return all, nil
	case old.Kind() != now.Kind() || old.Kind() != '{' && old.Kind() != '[':
		return append(all, fieldDifference{path, old, now}), nil
	}
	before, err := partsOf(path, old)
	if err != nil {
		return nil, err
	}
	after, err := partsOf(path, now)
	if err != nil {
		return nil, err
	}
	for _, b := range before {
		i := slices.IndexFunc(after, func(a jsonPart) bool { return a.path == b.path })
		if i < 0 {
			all = append(all, fieldDifference{b.path, b.value, nil})
			continue
		}
		if all, err = fieldDifferences(all, b.path, b.value, after[i].value); err != nil {
			return nil, err
		}
		after = slices.Delete(after, i, i+1)
	}
	for _, a := range after {
		all = append(all, fieldDifference{a.path, nil, a.value})
	}
	return all, nil
}

// jsonPart is a member of an object, or an item of an array.
type jsonPart struct {
	path  string
	value jsontext.Value
}

// partsOf takes an object or an array apart.
func partsOf(path string, v jsontext.Value) (parts []jsonPart, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		part := jsonPart{path: fmt.Sprintf("%s[%d]", path, len(parts))}
		if v.Kind() == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			if part.path = name.String(); path != "" {
				part.path = path + "." + part.path
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		part.value = value.Clone()
		parts = append(parts, part)
	}
	if _, err := d.ReadToken(); err != nil && err != io.EOF {
		return nil, err
	}
	return parts, nil
}
