package rules

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// operations is where people read which keys the log has.
const operations = "docs/operations.md"

func logRules() []rule {
	return []rule{
		{"keys of the log", "people search and count by the log's keys: each is a word of the table Logs in " + operations + ", which says what it holds, and stays", checkLogKeys},
	}
}

// levels are the methods that log.
var levels = []string{"Debug", "Info", "Warn", "Error"}

// checkLogKeys holds the keys of all log lines against the table in the docs.
func checkLogKeys(t *tree) (faults []fault) {
	told := logTable(t.texts[operations])
	used := map[string]bool{"job": true} // every line has it
	for _, p := range t.packages {
		if p.under("bench", "examples", "internal/torture") {
			continue
		}
		for _, s := range byPath(p.code) {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !logs(call) {
					return true
				}
				for i := 1; i < len(call.Args) && !spreads(call, i); i += 2 {
					key := literal(call.Args[i])
					used[key] = true
					if !slices.Contains(told, key) {
						faults = append(faults, t.at(call.Args[i], "the log's key %q is not in the table Logs of %s", key, operations))
					}
				}
				return true
			})
		}
	}
	for _, key := range told {
		if !used[key] && t.texts[operations] != "" {
			faults = append(faults, fault{path: operations, what: "no line of the log has the key " + key})
		}
	}
	return faults
}

// logs tells whether a call writes a line of the log: x.Log.Warn(…), log.Info(…).
func logs(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(levels, method.Sel.Name) || len(call.Args) == 0 {
		return false
	}
	switch on := method.X.(type) {
	case *ast.Ident:
		return on.Name == "log"
	case *ast.SelectorExpr:
		return strings.EqualFold(on.Sel.Name, "log") || on.Sel.Name == "own"
	}
	return false
}

// spreads tells whether an argument is a list that is spread.
func spreads(call *ast.CallExpr, i int) bool {
	return call.Ellipsis.IsValid() && i == len(call.Args)-1
}

func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			return text
		}
	}
	return "that is no literal"
}

// logTable are the keys of the table in the section Logs.
func logTable(text string) (keys []string) {
	_, section, _ := strings.Cut(text, "\n## Logs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		keys = append(keys, row[1])
	}
	return keys
}
