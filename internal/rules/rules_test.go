package rules

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rule is one thing that holds for the whole tree.
type rule struct {
	name   string
	reason string
	check  func(*tree) []fault
}

// rules are all there are; each is checked on the tree, and on an example that
// breaks it.
func rules() []rule {
	return slices.Concat(arrowRules(), apiRules(), codeRules(), errorRules(), logRules(), testRules(), textRules())
}

func TestTree(t *testing.T) {
	repository, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(repository) {
				t.Errorf("%s\n\tthe rule: %s", f, r.reason)
			}
		})
	}
}

// TestRules shows each rule examples. A line that ends in "// fault" breaks it,
// the others don't.
func TestRules(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			example, ok := examples()[r.name]
			if !ok {
				t.Fatal("there is no example of this rule")
			}
			small, err := newTree(example)
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[place]bool{}, map[place]string{}
			for file, text := range example {
				for i, line := range strings.Split(text, "\n") {
					if strings.HasSuffix(line, "// fault") {
						want[place{file, i + 1}] = true
					}
				}
			}
			for _, f := range r.check(small) {
				if _, ofExample := example[f.path]; ofExample {
					got[place{f.path, f.line}] = f.what
				}
			}
			for p := range want {
				if got[p] == "" {
					t.Errorf("%s:%d breaks the rule unseen", p.file, p.line)
				}
			}
			for p, what := range got {
				if !want[p] {
					t.Errorf("%s:%d keeps the rule, and yet: %s", p.file, p.line, what)
				}
			}
		})
	}
}

type place struct {
	file string
	line int
}

// unused are faults for exceptions that nothing needs.
func unused(exceptions map[string]string, needed map[string]bool, file string) (faults []fault) {
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !needed[name] {
			faults = append(faults, fault{"internal/rules/" + file, 0, "the exception for " + name + " is needed no more"})
		}
	}
	return faults
}
