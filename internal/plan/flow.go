package plan

import (
	"slices"

	"github.com/sluicestream/sluice/internal/epoch"
)

// sourcesOf are the sources that records come from which go into parts of the
// given inputs, sorted.
func sourcesOf(v epoch.Version, inputs []string) (sources []string) {
	seen := map[string]bool{}
	var walk func(names []string)
	walk = func(names []string) {
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			if _, is := v.Sources[name]; is {
				sources = append(sources, name)
			}
			walk(v.Operators[name].Inputs)
		}
	}
	walk(inputs)
	slices.Sort(sources)
	return sources
}

// sinksBehind are the sinks whose rows depend on an operator, sorted.
func sinksBehind(v epoch.Version, operator string) (sinks []string) {
	reaches := map[string]bool{operator: true}
	for again := true; again; {
		again = false
		for name, o := range v.Operators {
			if !reaches[name] && slices.ContainsFunc(o.Inputs, func(in string) bool { return reaches[in] }) {
				reaches[name], again = true, true
			}
		}
	}
	for name, s := range sorted(v.Sinks) {
		if slices.ContainsFunc(s.Inputs, func(in string) bool { return reaches[in] }) {
			sinks = append(sinks, name)
		}
	}
	return sinks
}

// hasRead tells whether the job has read anything of a source.
func (c *comparison) hasRead(source string) bool {
	if c.untouched() {
		return false
	}
	for _, o := range c.Head.Sources[source].Partitions {
		if o.Next > 0 {
			return true
		}
	}
	return false
}

// untouched tells whether the job has processed nothing: where its sources begin
// is all that its log may have.
func (c *comparison) untouched() bool {
	for _, s := range c.Head.State {
		if len(s.Segments) > 0 {
			return false
		}
	}
	return c.Head.Position == 0
}

// read are those of the sources that anything has been read of.
func (c *comparison) read(sources []string) []string {
	return slices.DeleteFunc(slices.Clone(sources), func(s string) bool { return !c.hasRead(s) })
}
