package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// setting is one line of a file of settings.
type setting struct {
	value string
	line  int
	from  string // the file and the line, for people
}

// parseSettings reads a file of settings. Each line is empty, a comment that
// begins with #, or has the form name = value, with the name of a flag. A value
// goes to the end of the line, or to a # behind a space; in double quotes, as Go
// writes them, it may hold anything. A name that comes again adds to a list.
func parseSettings(file string, data []byte, known []string) (map[string][]setting, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark
	settings := map[string][]setting{}
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		from := fmt.Sprintf("%s:%d", file, line)
		name, value, err := parseSetting(strings.TrimRight(text, "\r\n"), known)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		if name != "" {
			settings[name] = append(settings[name], setting{value, line, from})
		}
	}
	return settings, nil
}

// parseSetting reads a line; name is empty if it says nothing.
func parseSetting(line string, known []string) (name, value string, err error) {
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return "", "", fmt.Errorf("the line is no text: it holds bytes that are not UTF-8, or control characters; write it anew")
	}
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	name, value, ok := strings.Cut(line, "=")
	if !ok {
		return "", "", fmt.Errorf("the line is no setting: use name = value, as in epoch = 2s")
	}
	name = strings.TrimSpace(name)
	if !slices.Contains(known, name) {
		return "", "", fmt.Errorf("there is no setting %.80q%s", name, nearest(name, known))
	}
	value, err = parseValue(strings.TrimSpace(value))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", name, err)
	}
	return name, value, nil
}

func parseValue(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		text = withoutComment(text)
		if text == "" || text[0] == '#' {
			return "", fmt.Errorf(`it has no value; "" stands for an empty one`)
		}
		return text, nil
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", fmt.Errorf(`the value %.80s is not quoted as in "a \"b\" c"`, text)
	}
	if rest := strings.TrimSpace(text[len(quoted):]); rest != "" && rest[0] != '#' {
		return "", fmt.Errorf("%.80q stands behind the value's quotes; write a value on its own", rest)
	}
	value, err := strconv.Unquote(quoted)
	if err != nil || !utf8.ValidString(value) {
		return "", fmt.Errorf("the value %.80s is no text", quoted)
	}
	return value, nil
}

// withoutComment cuts a value at the first # that follows a space.
func withoutComment(text string) string {
	for i := 1; i < len(text); i++ {
		if text[i] == '#' && (text[i-1] == ' ' || text[i-1] == '\t') {
			return strings.TrimSpace(text[:i])
		}
	}
	return text
}

// nearest suggests a name that was perhaps meant.
func nearest(name string, known []string) string {
	const most = 3 // letters that may differ
	best, least := "", most+1
	for _, k := range known {
		if d := distance(name, k, most); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "; `run --help` lists them"
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters to add, remove or replace that make one word
// of the other; what is more than most is most+1.
func distance(a, b string, most int) int {
	if len(a) > len(b)+most || len(b) > len(a)+most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], most+1)
}
