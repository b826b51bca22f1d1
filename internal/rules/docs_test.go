package rules

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"unicode"
)

func checkDocs(t *tree) (faults []fault) {
	for _, p := range t.packages {
		if len(p.code) == 0 {
			continue
		}
		faults = append(faults, p.checkTour(t)...)
		if p.name == "main" {
			continue
		}
		for _, e := range p.exports() {
			switch {
			case e.doc == nil && e.group == nil:
				faults = append(faults, t.at(e.ident, "%s has no doc comment", e.name))
			case e.doc != nil && !begins(e.doc, e.ident.Name) && !isValue(e.node):
				faults = append(faults, t.at(e.ident, "the doc comment of %s doesn't begin with its name", e.name))
			}
		}
	}
	return faults
}

// isValue tells whether the node declares constants or variables, whose
// comments often stand for several.
func isValue(n ast.Node) bool {
	_, ok := n.(*ast.ValueSpec)
	return ok
}

// begins tells whether a comment has the name among its first words: "A Job",
// "The errors that Run", "NewJob".
func begins(doc *ast.CommentGroup, name string) bool {
	return slices.Contains(firstWords(doc, 4), name)
}

// firstWords are the first words of a comment, without what stands between.
func firstWords(doc *ast.CommentGroup, n int) []string {
	words := strings.FieldsFunc(doc.Text(), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return words[:min(n, len(words))]
}

// checkTour wants one comment that tells what the package is for.
func (p *pkg) checkTour(t *tree) []fault {
	want := []string{"Package", p.name}
	if p.name == "main" {
		want = []string{"Command", path.Base(p.folder)}
	}
	for _, s := range p.code {
		if s.ast.Doc != nil && (slices.Equal(firstWords(s.ast.Doc, 2), want) || p.under("internal/torture/testjobs")) {
			return nil
		}
	}
	first := byPath(p.code)[0]
	return []fault{t.at(first.ast.Name, "the package has no comment that begins with %q", strings.Join(want, " "))}
}
