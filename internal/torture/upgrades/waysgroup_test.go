package upgrades

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/epoch"
)

// commits has a group of consumers commit offsets of a topic, short by some of the last
// rows.
func (w *way) commits(group, topic string, short int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	for _, r := range w.cluster.Read(w.t, topic) {
		offsets.AddOffset(topic, r.Partition, r.Offset+1-short, -1)
	}
	if err := w.cluster.Admin.CommitAllOffsets(w.t.Context(), group, offsets); err != nil {
		w.t.Fatal(err)
	}
}

// says waits until a process has logged something.
func (p *process) says(text string) {
	p.w.t.Helper()
	p.w.await(p.what+" says: "+text, func() bool { p.goesOn(); return strings.Contains(p.said(), text) }, nil)
}

// TestWaitGroup keeps rows from a new topic until a group of consumers has read all of the
// old one, also if the process is killed meanwhile; sinks that both builds have go on.
func TestWaitGroup(t *testing.T) {
	w := newWay(t, "rows", "more")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(3, nil)
	w.commits("readers", "rows", 1)
	next := func(what string) *process {
		return w.upgrade(what, second(w, build{version: 2, rows: []string{"more"}}), sluice.Options{Grace: time.Second}, sluice.Upgrade{Auto: true, WaitGroup: "readers", WaitGroupFor: time.Hour})
	}
	u := next("the second build")
	record := w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	u.says("a new sink waits")
	w.feedEpochs(3, nil)
	if n := len(w.cluster.Read(t, "more")); n > 0 {
		t.Errorf("the new topic has %d rows, and the group is behind in the old one", n)
	}
	u.kill()
	u = next("the second build again")
	u.says("a new sink waits")
	w.feedAll()
	w.awaitTable("totals", recount(w.fed, nil))
	if n := len(w.cluster.Read(t, "more")); n > 0 {
		t.Errorf("behind a restart the new topic has %d rows, and the group is behind in the old one", n)
	}
	w.commits("readers", "rows", 0)
	before, since := w.cuts(record.Ends.Branch)
	w.checkRows("rows", before)
	w.awaitRows("more", since)
	u.says("has read all of the sinks")
	u.stops()

	// Once there are rows nobody waits.
	w.commits("readers", "rows", 1)
	u = next("the second build once more")
	w.feedAll()
	_, since = w.cuts(record.Ends.Branch)
	w.awaitRows("more", since)
	if strings.Contains(u.said(), "a new sink waits") {
		t.Error("it waits for the group although the new topic has rows")
	}
	u.stops()
}

// TestWaitGroupInVain goes on without a group that has read nothing.
func TestWaitGroupInVain(t *testing.T) {
	w := newWay(t, "rows", "more")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}}), sluice.Options{})
	w.feedEpochs(2, nil)
	u := w.upgrade("the second build", second(w, build{version: 2, rows: []string{"more"}}), sluice.Options{},
		sluice.Upgrade{Auto: true, WaitGroup: "nobody", WaitGroupFor: 10 * time.Millisecond})
	record := w.awaitLive(1, epoch.Upgrade)
	old.endsWith(12)
	w.feedAll()
	_, since := w.cuts(record.Ends.Branch)
	w.awaitRows("more", since)
	u.says("has committed no offset of the sinks that this build lacks") // before it was begun
	u.says("gets its rows all the same")
	u.stops()
}

// TestWaitGroupRefused begins nothing where nothing would wait, or nothing could tell of
// the group.
func TestWaitGroupRefused(t *testing.T) {
	w := newWay(t, "rows", "more")
	old := w.run("the first build", first(w, build{version: 1, rows: []string{"rows"}, files: []string{"old"}}), sluice.Options{})
	w.feedEpochs(2, nil)
	for name, c := range map[string]struct {
		b    build
		says string
	}{
		"no sink is new":              {build{}, "expected a sink of a new name, which waits, found none"},
		"none is left":                {build{rows: []string{"rows", "more"}, files: []string{"old"}}, "expected a sink that this build lacks, which the group reads to its end, found none"},
		"the one left has no offsets": {build{rows: []string{"rows", "more"}}, "expected a sink that this build lacks in a system that has groups of consumers, such as Kafka, found sink old"},
		"the new one's has no groups": {build{files: []string{"old", "new"}}, "expected a new sink in a system that has groups of consumers, such as Kafka, found sink new"},
	} {
		t.Run(name, func(t *testing.T) {
			c.b.version = 2
			w.upgrade("the second build", second(w, c.b), sluice.Options{}, sluice.Upgrade{Auto: true, WaitGroup: "readers"}).
				endsWith(2, "group readers can't be awaited", c.says, "Nothing was begun")
		})
	}
	if all := w.branches(); len(all) != 1 {
		t.Errorf("branches %v, want main alone", all)
	}
	old.goesOn()
	old.stops()
}
