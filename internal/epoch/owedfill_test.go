package epoch

import (
	"slices"
	"testing"

	"github.com/sluicestream/sluice/store"
)

// TestOwedToFillBehindACleanUp has clean-up take all that it may, before what is owed to a
// sink that a branch fills is looked for: openings may lie before that, which owe nothing.
func TestOwedToFillBehindACleanUp(t *testing.T) {
	generation := Generation(1)
	follower := func(kind Kind, position Position, parts int) Manifest {
		out := SinkState{Start: 4, Confirmed: 4, Fill: &Fill{Branch: "n", Parts: parts}}
		if kind == Data {
			out.Outbox = make([]Object, 1)
		}
		return Manifest{Kind: kind, Position: position, Sinks: map[string]SinkState{"out": out}}
	}
	live := func(kind Kind, position Position) Manifest {
		m := follower(kind, position, 1)
		out := m.Sinks["out"]
		out.Start, m.Live = 5, &generation
		m.Sinks["out"] = out
		return m
	}
	for name, c := range map[string]struct {
		log       []Manifest
		delivered int
		through   Epoch
		want      []Epoch
	}{
		"nothing was delivered": {[]Manifest{follower(Base, 4, 0), follower(Open, 4, 0), follower(Open, 4, 0), follower(Data, 5, 1), follower(Open, 5, 1)}, 0, 0, []Epoch{3}},
		"some was":              {[]Manifest{follower(Base, 4, 0), follower(Data, 5, 1), follower(Open, 5, 1), follower(Open, 5, 1), follower(Data, 6, 2)}, 1, 1, []Epoch{4}},
		"it is live":            {[]Manifest{follower(Base, 4, 0), follower(Data, 5, 1), live(Open, 5), live(Open, 5), live(Data, 6)}, 1, 1, []Epoch{4}},
		"live, and some is owed of before": {
			[]Manifest{follower(Base, 4, 0), follower(Open, 4, 0), follower(Data, 5, 1), live(Open, 5), live(Data, 6)}, 0, 0, []Epoch{2, 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store.NewMemory()
			job := newProcess(t, s, 1).job
			parent, newest := "", len(c.log)-1
			view := FloorView{Retention: Retention{Epochs: 1}, Owed: AllPositions, Filling: c.through}
			for i := range c.log {
				m := &c.log[i]
				m.Format, m.JobID, m.Branch, m.Task, m.Epoch, m.Time, m.Parent = Format, job.ID(), "n", FirstTask, Epoch(i), int64(i), parent
				if i == newest {
					now := m.Sinks["out"]
					now.Fill = &Fill{Branch: "n", Parts: now.Fill.Parts, Delivered: c.delivered, Through: c.through}
					m.Sinks["out"] = now
				}
				data, err := m.Encode()
				if err == nil {
					err = s.Create(t.Context(), "spend/"+ManifestPath("n", FirstTask, m.Epoch), data)
				}
				if err != nil {
					t.Fatal(err)
				}
				parent = Hash(data)
				view.Log = append(view.Log, TraceOf(*m))
			}
			head := c.log[newest]
			chain := []Link{{Branch: "n", To: AllPositions}}
			if head.Live != nil {
				view.Owed, chain[0].From, chain[0].Live = 5, 5, generation
			}
			floor := DecideFloor(view).Floor
			if floor == 0 {
				t.Fatal("clean-up takes nothing")
			}
			clean(t, s, "n", floor)
			owed, err := job.owedOver(t.Context(), head, chain, []string{"out"})
			if err != nil {
				t.Fatalf("with the floor at %d: %v", floor, err)
			}
			var got []Epoch
			for _, o := range owed["out"] {
				got = append(got, o.Manifest.Epoch)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("owed are epochs %v, expected %v", got, c.want)
			}
		})
	}
}
