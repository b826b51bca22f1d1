package postgres

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// checkName refuses what can't be a column's or a table's name here: rows are
// frozen with their columns' names, which are names of Avro's too.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("a name is empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name %q has %d bytes, the most that PostgreSQL keeps is %d", name, len(name), maxName)
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%q can't be a name here: letters of ASCII, digits and underscores, no digit first", name)
		}
	}
	return nil
}

// quote writes an identifier, exactly as it is.
func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// quoteAll writes identifiers, with something before each and commas between.
func quoteAll(before string, names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = before + quote(n)
	}
	return strings.Join(quoted, ", ")
}

// snakeCase is the column's name for a field's: UserID is user_id, HTTPCode2 is
// http_code2.
func snakeCase(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
