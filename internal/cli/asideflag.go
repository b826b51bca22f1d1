package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// asideFiles are the files that entries of states are set aside in, by state: a flag
// that takes STATE=FILE, and may be repeated.
type asideFiles map[string]string

var _ pflag.SliceValue = (*asideFiles)(nil)

// addSetAside adds the flag that names them; what says what it does.
func addSetAside(f *pflag.FlagSet, files *map[string]string, what string) {
	f.Var((*asideFiles)(files), "set-aside", what+"; may be repeated (default none)")
}

// String implements pflag.Value.
func (a *asideFiles) String() string { return strings.Join(a.GetSlice(), ",") }

// Type implements pflag.Value.
func (*asideFiles) Type() string { return "STATE=FILE" }

// Set implements pflag.Value.
func (a *asideFiles) Set(text string) error {
	state, file, ok := strings.Cut(text, "=")
	if !ok || state == "" || file == "" {
		return fmt.Errorf("%q is no STATE=FILE, such as spend=aside.jsonl", text)
	}
	if other, again := (*a)[state]; again && other != file {
		return fmt.Errorf("state %s has the file %s already; give it one", state, other)
	}
	if *a == nil {
		*a = asideFiles{}
	}
	(*a)[state] = file
	return nil
}

// Append implements pflag.SliceValue.
func (a *asideFiles) Append(text string) error { return a.Set(text) }

// Replace implements pflag.SliceValue.
func (a *asideFiles) Replace(texts []string) error {
	*a = nil
	for _, text := range texts {
		if err := a.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice implements pflag.SliceValue.
func (a *asideFiles) GetSlice() []string {
	all := []string{}
	for _, state := range slices.Sorted(maps.Keys(*a)) {
		all = append(all, state+"="+(*a)[state])
	}
	return all
}
