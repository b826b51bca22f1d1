package rules

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The texts of the error types are held to their form in the folder texts.
func errorRules() []rule {
	return []rule{
		{"texts of errors", "an error is one line, and part of another's: it begins small, wraps its cause with %w, and says what is the matter rather than that something failed", checkErrors},
	}
}

// makers are the functions that make errors from a text.
var makers = map[string]bool{"fmt.Errorf": true, "errors.New": true, ".usagef": true}

// empty are words that say nothing.
var empty = regexp.MustCompile(`(?i)\b(failed to|unable to|error (while|when|in)|an error occurred|something went wrong|invalid argument)\b`)

// proper are words with a capital that begin a text by right.
var proper = map[string]bool{"Avro": true, "Go": true, "Kafka": true, "PostgreSQL": true, "Unix": true}

// unwrapped are files that tell a cause without wrapping it, and why.
var unwrapped = map[string]string{}

func checkErrors(t *tree) (faults []fault) {
	needed := map[string]bool{}
	for _, p := range t.packages {
		if p.under(programs...) {
			continue
		}
		for _, s := range byPath(p.code) {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if from, name := selectorOf(c, ok); from == "errors" && name == "Join" {
					faults = append(faults, t.at(c, "errors.Join makes a text of several lines"))
				}
				if !ok || !makesError(c) {
					return true
				}
				faults = append(faults, t.textFaults(c)...)
				if hidesCause(c) {
					needed[s.path] = true
					if unwrapped[s.path] == "" {
						faults = append(faults, t.at(c, "the cause is told and not wrapped"))
					}
				}
				return true
			})
		}
	}
	return append(faults, unused(unwrapped, needed, "errors_test.go")...)
}

// selectorOf is what a call calls of which package.
func selectorOf(c *ast.CallExpr, ok bool) (from, name string) {
	if !ok {
		return "", ""
	}
	return selector(c.Fun)
}

// makesError tells whether a call makes an error from a text.
func makesError(c *ast.CallExpr) bool {
	from, name := selector(c.Fun)
	if from == "" {
		name = called(c)
	}
	return len(c.Args) > 0 && makers[from+"."+name]
}

// textFaults are what is wrong with the text of an error.
func (t *tree) textFaults(c *ast.CallExpr) (faults []fault) {
	text := formatOf(c)
	first, _, _ := strings.Cut(text, " ")
	switch {
	case strings.ContainsAny(text, "\n\r"):
		faults = append(faults, t.at(c, "the text has several lines"))
	case empty.MatchString(text):
		faults = append(faults, t.at(c, "%q says nothing", empty.FindString(text)))
	case capital(first) && !proper[first]:
		faults = append(faults, t.at(c, "the text begins with a capital"))
	}
	return faults
}

// formatOf is the text that a call begins with, empty if it isn't written there.
func formatOf(c *ast.CallExpr) string {
	literal, ok := c.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// hidesCause tells whether an error among the arguments is told by another verb
// than %w.
func hidesCause(c *ast.CallExpr) bool {
	for i, verb := range verbsOf(formatOf(c)) {
		if i+1 < len(c.Args) && verb != 'w' && verb != 'T' && isError(c.Args[i+1]) {
			return true
		}
	}
	return false
}

// capital tells whether a word is written with one, as the first of a sentence
// is; CSV and fmt.Stringer aren't.
func capital(word string) bool {
	first, n := utf8.DecodeRuneInString(word)
	second, _ := utf8.DecodeRuneInString(word[n:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}

// verbsOf are the verbs of a format, one for each argument.
func verbsOf(format string) (verbs []byte) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.[]", format[i]) >= 0; i++ {
		}
		for ; i < len(format) && format[i] == '*'; i++ {
			verbs = append(verbs, '*')
		}
		if i < len(format) && format[i] != '%' {
			verbs = append(verbs, format[i])
		}
	}
	return verbs
}

// isError tells whether an argument is an error, by its name.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err" || e.Name == "cause" || strings.HasSuffix(e.Name, "Err")
	case *ast.SelectorExpr:
		return e.Sel.Name == "Err" || e.Sel.Name == "Cause"
	case *ast.CallExpr:
		_, name := selector(e.Fun)
		return name == "Err" || name == "Cause"
	}
	return false
}
