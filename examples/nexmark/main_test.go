package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/store"
)

// TestQueries runs each query to the end of its events, and checks its answers; and sees
// that answers which are missing, or too many, are found.
func TestQueries(t *testing.T) {
	for _, query := range []string{"q5", "q7", "q11", "q12"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			variables := map[string]string{"NEXMARK_EVENTS": "300000", "NEXMARK_DIR": t.TempDir()}
			s, err := settingOf([]string{query, "check"}, func(name string) string { return variables[name] })
			if err != nil {
				t.Fatal(err)
			}
			if err := s.job().Run(t.Context(), sluice.Options{Store: store.NewMemory(), Volatile: true}); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			if err := check(s, &said); query == "q12" {
				if err == nil || !strings.Contains(err.Error(), "goes by the clock") {
					t.Errorf("q12: %v", err)
				}
				return
			} else if err != nil || !strings.HasPrefix(said.String(), query+": all ") || strings.Contains(said.String(), "all 0") {
				t.Fatalf("%q, %v", said.String(), err)
			}
			files, _ := filepath.Glob(filepath.Join(s.dir, "[0-9]*.jsonl"))
			if len(files) == 0 {
				t.Fatal("there are no answers")
			}
			whole, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			first, rest, _ := strings.Cut(string(whole), "\n")
			for what, text := range map[string]string{"one is missing": rest, "one is there twice": first + "\n" + string(whole)} {
				if err := os.WriteFile(files[0], []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := check(s, &said); err == nil {
					t.Errorf("%s, and it was not found", what)
				}
			}
		})
	}
}
