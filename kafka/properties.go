package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// property is a setting of a file in the form of Java's properties.
type property struct {
	key, value string
	line       int // that it begins in, from 1
}

// parseProperties reads such a file: a setting a line, its name and its value with
// = or : or space between, comments behind # and !, a backslash at the end of a line
// that goes on in the next, and escapes such as \t and \u00e4. Java takes other
// bytes than ASCII for Latin-1, which hardly anybody means, so that they are refused
// outside of comments. Errors name lines, and nothing that stands there.
func parseProperties(data []byte) (all []property, err error) {
	in := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	lines := strings.Split(string(in), "\n")
	for i := 0; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], propertySpace)
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		p := property{line: i + 1}
		for goesOn(text) {
			text = text[:len(text)-1]
			if i++; i < len(lines) {
				text += strings.TrimLeft(lines[i], propertySpace)
			}
		}
		key, value := splitProperty(text)
		if p.key, err = unescapeProperty(key); err == nil {
			p.value, err = unescapeProperty(value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// propertySpace is what parts names from values, and begins lines.
const propertySpace = " \t\f"

// goesOn tells whether a line ends with a backslash that no other escapes.
func goesOn(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// splitProperty parts the name from the value; both are still escaped.
func splitProperty(text string) (key, value string) {
	end := 0
	for end < len(text) && !strings.ContainsRune(propertySpace+"=:", rune(text[end])) {
		if text[end] == '\\' && end+1 < len(text) {
			end++
		}
		end++
	}
	value = strings.TrimLeft(text[end:], propertySpace)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], propertySpace)
	}
	return text[:end], value
}

// escapedUnit is the unit of UTF-16 that a text says that begins with the u of its
// escape.
func escapedUnit(text string) (rune, error) {
	n, err := strconv.ParseUint(text[1:min(len(text), 5)], 16, 16)
	if err != nil || len(text) < 5 {
		return 0, errors.New(`\u without four hexadecimal digits behind it`)
	}
	return rune(n), nil
}

// unescapeProperty is a text without its escapes.
func unescapeProperty(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			return "", fmt.Errorf(`a character that isn't ASCII, which Java would take for Latin-1: write it as \u and four hexadecimal digits`)
		case c != '\\' || i+1 == len(text):
			out.WriteByte(c)
		default:
			i++
			switch text[i] {
			case 't':
				out.WriteByte('\t')
			case 'n':
				out.WriteByte('\n')
			case 'r':
				out.WriteByte('\r')
			case 'f':
				out.WriteByte('\f')
			case 'u':
				r, err := escapedUnit(text[i:])
				if err != nil {
					return "", err
				}
				if i += 4; utf16.IsSurrogate(r) {
					low, err := rune(0), error(nil)
					if strings.HasPrefix(text[i+1:], `\u`) {
						low, err = escapedUnit(text[i+2:])
					}
					if r = utf16.DecodeRune(r, low); err != nil || r == utf8.RuneError {
						return "", errors.New(`half of a character that takes two \u escapes, without its other half`)
					}
					i += 6
				}
				out.WriteRune(r)
			default:
				out.WriteByte(text[i])
			}
		}
	}
	return out.String(), nil
}
