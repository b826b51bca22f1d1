package engine

import (
	"fmt"
	"github.com/sluicestream/sluice/internal/carry"
	"slices"
	"strings"
)

// Builder looks at a graph without running it: it finds which stage sends to
// which, and how deep each is.
type Builder struct {
	graph  *Graph
	level  uint8 // of what is put out at the point being looked at
	faults []string
}

// Build finds out how the graph's stages hang together, and what is wrong with
// that. It is to be called once, when everything has been added.
func (g *Graph) Build() error {
	b := &Builder{graph: g}
	in := b.instance(0)
	for _, s := range g.sources {
		s.feeder(in)
	}
	g.dead.instantiate(in)
	for _, s := range g.stages {
		b.level = s.depth
		s.lanes = len(s.start(b.instance(s.id)))
	}
	if len(g.states) > maxTables {
		b.faults = append(b.faults, fmt.Sprintf("a job has at most %d states; this one has %d", maxTables, len(g.states)))
	}
	for _, s := range g.states {
		s.KeyMeaning = g.stages[s.Stage-1].meaning
		var err error
		if s.Carrier, err = s.newCarrier(carry.Target{Kind: s.Kind, Limit: s.Limit, Meaning: s.Meaning, KeyMeaning: s.KeyMeaning, Form: s.Form}); err != nil {
			b.faults = append(b.faults, fmt.Sprintf("state %q: %v", s.Name, err))
		}
	}
	if len(b.faults) > 0 {
		return fmt.Errorf("%s", strings.Join(b.faults, "; "))
	}
	return nil
}

func (b *Builder) instance(stage int) *Instance {
	return &Instance{build: b, stage: stage, parts: map[part]any{}}
}

// reaches notes that an instance sends records to a stage.
func (b *Builder) reaches(in *Instance, stage int) {
	s := b.graph.stages[stage-1]
	if i, ok := slices.BinarySearch(s.origins, in.stage); !ok {
		s.origins = slices.Insert(s.origins, i, in.stage)
	}
	if b.level > maxLevel {
		b.faults = append(b.faults, fmt.Sprintf("more than %d KeyBys follow one another without a table between them", maxLevel+1))
		return
	}
	s.depth = max(s.depth, b.level+1)
}
