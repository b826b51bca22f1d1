package rules

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// program is a Go program in a text.
var program = regexp.MustCompile("(?s)```go\n(package main\n.*?)```")

// TestProgramsOfTheReadme compiles the programs that README.md shows.
func TestProgramsOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := program.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		t.Fatal("README.md shows no program")
	}
	for _, match := range found {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, match[1], 0o644); err != nil {
			t.Fatal(err)
		}
		vet := exec.CommandContext(t.Context(), "go", "vet", file)
		vet.Dir = "../.." // so that Sluice's packages are found
		if out, err := vet.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, match[1])
		}
		if formatted, err := format.Source(match[1]); err != nil || !bytes.Equal(formatted, match[1]) {
			t.Errorf("it is not as gofmt has it: %v\n%s", err, match[1])
		}
	}
}
