package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxLines bounds a Go file: one idea fits, with room to spare.
const maxLines = 700

// These are put together here, so that this file keeps its own rules.
var (
	laterWords   = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	machinePaths = regexp.MustCompile(`(^|[^\w.])/(wo` + `rk|ro` + `ot|fa` + `rm)/`)
)

func textRules() []rule {
	return []rule{
		{"short files", fmt.Sprintf("a file is one idea; over %d lines it is several", maxLines), checkLength},
		{"nothing for later", "what is to be done belongs to the issues, where somebody will see it", func(t *tree) []fault {
			return t.search(laterWords)
		}},
		{"no paths of a machine", "the repository works wherever it is cloned", func(t *tree) []fault {
			return t.search(machinePaths)
		}},
	}
}

func checkLength(t *tree) (faults []fault) {
	for _, file := range slices.Sorted(maps.Keys(t.texts)) {
		if lines := strings.Count(t.texts[file], "\n"); isGo(file) && lines > maxLines {
			faults = append(faults, fault{file, 1, fmt.Sprintf("%d lines", lines)})
		}
	}
	return faults
}

// search finds a pattern in the text of all files.
func (t *tree) search(pattern *regexp.Regexp) (faults []fault) {
	for _, file := range slices.Sorted(maps.Keys(t.texts)) {
		for i, line := range strings.Split(t.texts[file], "\n") {
			if found := pattern.FindString(line); found != "" {
				faults = append(faults, fault{file, i + 1, fmt.Sprintf("%q", found)})
			}
		}
	}
	return faults
}
