package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestExitCodesAsText(t *testing.T) {
	if got, want := exitCodes(0, 14), "Exit codes: 0 done, 14 damaged store."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for line := range strings.SplitSeq(exitCodes(), "\n") {
		if len(line) > helpWidth {
			t.Errorf("a long line: %s", line)
		}
	}
}

// codeRow is a row of the table: the code stands in its first cell.
var codeRow = regexp.MustCompile("(?m)^\\| *`?(\\d+)`? *\\|")

// TestExitCodesInTheDocs holds the table of docs/operations.md against the list.
func TestExitCodesInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]int{}
	for _, row := range codeRow.FindAllSubmatch(page, -1) {
		code, _ := strconv.Atoi(string(row[1]))
		found[code]++
	}
	for _, e := range exits {
		if found[e.code] != 1 {
			t.Errorf("exit code %d, %s, has %d rows in docs/operations.md", e.code, e.meaning, found[e.code])
		}
		delete(found, e.code)
	}
	for code := range found {
		t.Errorf("docs/operations.md has the exit code %d, which is none", code)
	}
}
