package plan

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
)

// Input is what a plan is made of.
type Input struct {
	// Job is the job's name, At the epoch to go on from, Head its manifest.
	Job  string
	At   epoch.At
	Head epoch.Manifest
	// Old describes what the head's state is of, with the names of functions as the
	// build had them that ran it; New describes the build that is to go on.
	Old, New epoch.Version
	// Ways are those of New's states, by their names.
	Ways map[string]*carry.Way
	// Absent says of sinks of New that are back after an absence what they were:
	// in the version that last had them, or if nothing tells which that is, in all
	// that had them.
	Absent map[string][]epoch.Part
	// AbsentSources says the same of sources that are back: what they were in all
	// versions that had them.
	AbsentSources map[string][]epoch.Part
	// Drop and Gap are the consents that are given.
	Drop, Gap []string
	// Build is this build; the zero one is nobody's. Replace lets it run although
	// another one has replaced it.
	Build   epoch.Build
	Replace bool
	// Follows says that the build is to take another branch's place: what sinks are owed
	// that it lacks is delivered by the build that has them.
	Follows bool
	// Backfill says that it fills sinks that are new before that.
	Backfill bool
	// Dropped are the names that consents may give though nothing is dropped under
	// them now, since an earlier start has used them; see [Dropped].
	Dropped []string
}

// Compare makes a plan. It finds every difference.
func Compare(in Input) *Plan {
	c := &comparison{Input: in, plan: &Plan{Job: in.Job, At: in.At, partial: map[string]epoch.Partial{}, windows: map[string]epoch.Windows{}, tables: map[string][]string{}}, drops: map[string]bool{}}
	c.build()
	c.sources()
	c.times()
	c.operators()
	c.keys()
	c.states()
	c.sinks()
	c.flags()
	return c.plan
}

// comparison is a plan in the making.
type comparison struct {
	Input
	plan  *Plan
	drops map[string]bool // what would be dropped, whether it is allowed or not
}

// build has a line if this build has been replaced by another.
func (c *comparison) build() {
	if !slices.Contains(c.Head.Superseded, c.Build) {
		return
	}
	l := c.line(BuildPart, c.Job)
	allowed, would := "it runs all the same, as --replace allows", "--replace runs this build all the same, from where the job stands"
	if c.Follows {
		allowed, would = "it is brought back", "upgrade --again upgrades to this build once more; rollback goes back to its own state"
	}
	if c.Replace {
		l.Note("replaced by " + c.Head.Build.String() + "; " + allowed)
		return
	}
	l.Add(Refused, c.Job+": this build was replaced; the job runs "+c.Head.Build.String(), would)
}

func (c *comparison) line(part Part, name string) *Line {
	l := &Line{Part: part, Name: name}
	c.plan.Lines = append(c.plan.Lines, l)
	return l
}

// drop adds a cause that drops data: it needs a consent, or has one.
func (c *comparison) drop(l *Line, name, cause string) {
	c.drops[name] = true
	if !slices.Contains(c.Drop, name) {
		l.needs("--drop", name, cause, fmt.Sprintf("%s: data would be lost; allow it with --drop %s", cause, name))
		return
	}
	l.Add(Resolves, cause, "")
	l.Note("dropped, as --drop " + name + " allows")
}

// flags finds consents to what is not dropped: each may be a slip of the pen for
// something that is. One that an earlier start has used is fine, since a
// supervisor repeats the command line.
func (c *comparison) flags() {
	would := "nothing would be dropped, so leave it out"
	if len(c.drops) > 0 {
		would = "name what would be: " + strings.Join(slices.Sorted(maps.Keys(c.drops)), ", ")
	}
	for _, name := range c.Drop {
		if !c.drops[name] && !slices.Contains(c.Dropped, name) {
			c.line(FlagPart, "--drop "+name).Add(Refused, "--drop "+name+": that is not dropped", would)
		}
	}
	for _, name := range c.Gap {
		_, had := c.Head.Sinks[name]
		if _, has := c.New.Sinks[name]; !had && !has {
			c.line(FlagPart, "--gap "+name).Add(Refused, "--gap "+name+": there never was such a sink", "name one that is back, or leave it out")
		}
	}
}

// both goes through the names of two maps in their order.
func both[V, W any](old map[string]V, now map[string]W) iter.Seq[string] {
	names := slices.Collect(maps.Keys(now))
	for name := range old {
		if _, also := now[name]; !also {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Values(names)
}

func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// without returns the names in a that are not in b.
func without(a, b []string) (out []string) {
	for _, name := range a {
		if !slices.Contains(b, name) {
			out = append(out, name)
		}
	}
	return out
}

// mostNames bounds how many names a text lists.
const mostNames = 5

// list names some things in a text.
func list(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// told is a difference with a part's name in front.
func told(name string, d schema.Difference) string {
	if d.Path == "" {
		return name + ": " + d.String()
	}
	return joined(name, d.String())
}

// joined puts a part's name in front of a path in it.
func joined(name, path string) string {
	if path == "" || path[0] == ':' || path[0] == '[' || path[0] == '{' {
		return name + path
	}
	return name + "." + path
}
