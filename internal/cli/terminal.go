package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// terminal returns the width of the terminal that w is; ok is false if it is
// none.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	width, _, err := term.GetSize(f.Fd())
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// printable is a text of a store or a file as it may be printed in a line: what
// is no printable character, and might break the line or order a terminal about,
// is shown by its code.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unprintable(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// styles say whether words get colours.
type styles struct{ colours bool }

// stylesFor are those of what is written to w: colours only on a terminal, and
// not if NO_COLOR is set (no-color.org).
func stylesFor(w io.Writer) styles {
	_, ok := terminal(w)
	return styles{ok && os.Getenv("NO_COLOR") == ""}
}

func (s styles) sgr(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s styles) head(text string) string { return s.sgr("1", text) }
func (s styles) bad(text string) string  { return s.sgr("31", text) }
func (s styles) warn(text string) string { return s.sgr("33", text) }
func (s styles) good(text string) string { return s.sgr("32", text) }

// sure asks a person on the terminal, and takes only a yes for one. Where there is no
// terminal nobody can be asked, and the flag has to say it.
func sure(c *cobra.Command, question, flag string) (bool, error) {
	in, isFile := c.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(in.Fd()) {
		return false, usagef("%s: there is no terminal on which to ask: %s Say so with %s", c.CommandPath(), question, flag)
	}
	if _, err := fmt.Fprintf(c.ErrOrStderr(), "%s [y/N] ", question); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(io.LimitReader(in, maxAnswer)).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 10
