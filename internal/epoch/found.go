package epoch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DecideFound tells whether a branch that is there is the one which is to begin: of
// the same build, for the same, asked for alike, and from the same start where one was
// named. Without one any start counts: the live branch has moved on since.
func DecideFound(b Beginning, build Build, file BranchFile) bool {
	if file.Base == nil || file.Build != build || file.Kind != b.Kind || file.Asked != b.Asked || b.Kind == Rehearsal {
		return false
	}
	return b.From == nil || file.Base.Branch == b.From.Branch && maps.Equal(file.Base.Tasks, b.From.Tasks)
}

// BranchName is the name of a branch at a try: those before have ended. It is the
// same for all processes that begin the same for a build, and no other's.
func BranchName(jobID string, b Beginning, build Build, try int) string {
	text := fmt.Sprintf("%q %q %q %q %q %d", jobID, b.Kind, build.Revision, build.Executable, build.Version, try)
	if b.Asked != "" {
		text += fmt.Sprintf(" asked %q", b.Asked)
	}
	if b.From != nil {
		text += fmt.Sprintf(" %q", b.From.Branch)
		for _, task := range slices.Sorted(maps.Keys(b.From.Tasks)) {
			text += fmt.Sprintf(" %q %d", task, b.From.Tasks[task])
		}
	}
	return b.Name + "-" + Hash([]byte(text))[:branchDigits]
}

// branchDigits tell branches of one name apart.
const branchDigits = 16

// PinHolder is the branch that a pin belongs to, by its id: a pin is that branch's
// name, a dash, and random digits.
func PinHolder(id string) string {
	if cut := strings.LastIndexByte(id, '-'); cut > 0 {
		return id[:cut]
	}
	return id
}
