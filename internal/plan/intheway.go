package plan

import (
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/migrate"
)

// InTheWay tells, by state, what stands in the way of a file for entries that are set
// aside; nil for nothing.
func InTheWay(files env.FS, setAside map[string]string) map[string]error {
	found := map[string]error{}
	for state, path := range setAside {
		found[state] = migrate.Free(files, path)
	}
	return found
}
