package epoch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestDeliveryHistories plays the protocol's histories of deliveries on the real
// decisions. Each ends well with the rules, and does not without its own. What the
// sinks' systems do is a model of them here; the connectors' tests play the same
// against the real ones.
func TestDeliveryHistories(t *testing.T) {
	for _, c := range []struct {
		name    string
		history func(off bool) (harm string)
	}{
		{"H1, D1: what the old branch has committed and not delivered", oldBranchsRest},
		{"H2, D1: a dead process is not waited for", deadDeliverer},
		{"H2, D3: it wakes, and delivers at the same time", twoDeliverers},
		{"H3, D5: the progress is read, then the producer is started", readBeforeStart},
		{"H4: a transactional id of the process's own", ownTransactionalID},
		{"H5, D5: the same producer goes on after a doubtful end", sameProducer},
		{"H6a, D2: there is no row to lock", noRowToLock},
		{"H6b: a paused process holds the lock", pausedWithLock},
		{"H6c, D2: the row comes with the first delivery", rowComesLate},
		{"D2: a zombie makes a lost record again", recordMadeAgain},
		{"D2: the record of a sink that is back", recordOfOneThatIsBack},
		{"D9: parts are told apart by positions alone", partsByPosition},
		{"H22, D3: the record is lost", lostRecord},
		{"H22, D3: the sink went back with its record", restoredSink},
		{"H22, D3: the sink is ahead of the log", sinkAhead},
		{"H22, D3: the sink has another manifest's rows", otherManifest},
		{"H22, D3: a log that went back has outgrown the sink", outgrownSink},
		{"H23: a consumer takes files away", takenFiles},
	} {
		t.Run(c.name, func(t *testing.T) {
			if harm := c.history(false); harm != "" {
				t.Errorf("with the rule: %s", harm)
			}
			if harm := c.history(true); harm == "" {
				t.Error("without the rule nothing goes wrong: the history tests nothing")
			}
		})
	}
}

// data is a manifest of a live branch that owes the sink "out" its rows.
func data(branch string, live Generation, position Position) Manifest {
	return Manifest{Kind: Data, Branch: branch, Live: &live, Position: position, Sinks: map[string]SinkState{"out": {Record: "made"}}}
}

// table is a sink that remembers a record beside the rows, in one step.
type table struct {
	record *SinkRecord
	rows   []Position // of the deliveries that were applied
}

func made() *table { return &table{record: &SinkRecord{ID: "made"}} }

// view is what a deliverer of o knows, whose log goes up to head.
func (s *table) view(o Owed, confirmed, head Position) DeliveryView {
	return DeliveryView{
		From: Place{Position: o.From}, To: Place{Position: o.To}, Record: s.record, ID: "made", Confirmed: confirmed, Head: head,
	}
}

// deliver carries a delivery out as the real decision says.
func (s *table) deliver(o Owed, confirmed, head Position) DeliveryStep {
	step, _ := DecideDelivery(s.view(o, confirmed, head))
	if step == Apply {
		s.apply(o.To)
	}
	return step
}

func (s *table) apply(to Position) {
	s.record = &SinkRecord{Place: Place{Position: to}, ID: "made"}
	s.rows = append(s.rows, to)
}

// exactly tells the harm if the sink has not each position up to last, once.
func (s *table) exactly(last Position) string {
	var want []Position
	for p := range last {
		want = append(want, p+1)
	}
	if !slices.Equal(s.rows, want) {
		return fmt.Sprintf("the sink has positions %v, want %v", s.rows, want)
	}
	return ""
}

// oldBranchsRest: main commits 2 and is killed before it delivers that; the branch
// n goes live and commits 3.
func oldBranchsRest(off bool) string {
	chain := []Manifest{data("main", 0, 1), data("main", 0, 2), data("n", 1, 3)}
	sink := made()
	sink.apply(1)
	if off { // the new branch delivers its own, and the sink takes a newer generation's first
		sink.apply(3)
		return sink.exactly(3)
	}
	owed, err := backlog(chain, "out", 1)
	if err != nil {
		return err.Error()
	}
	for _, o := range owed {
		sink.deliver(o, 1, 3)
	}
	return sink.exactly(3)
}

// deadDeliverer: main's process is dead, with a delivery owed.
func deadDeliverer(off bool) string {
	sink := made()
	owed, err := backlog([]Manifest{data("main", 0, 1), data("n", 1, 2)}, "out", 0)
	if err != nil {
		return err.Error()
	}
	for _, o := range owed {
		if off && o.Manifest.Branch != "n" {
			return "nothing is delivered before a dead process has delivered its own"
		}
		sink.deliver(o, 0, 2)
	}
	return sink.exactly(2)
}

// twoDeliverers: both deliver main's rest, one behind the other, in any order.
func twoDeliverers(off bool) string {
	chain := []Manifest{data("main", 0, 1), data("main", 0, 2), data("n", 1, 3)}
	for turns := range 1 << 5 { // who moves next
		sink := made()
		both := [2][]Owed{}
		for i, n := range []int{2, 3} {
			owed, err := backlog(chain[:n], "out", 0)
			if err != nil {
				return err.Error()
			}
			both[i] = owed
		}
		for turn := turns; len(both[0])+len(both[1]) > 0; turn /= 2 {
			who := turn % 2
			if len(both[who]) == 0 {
				who = 1 - who
			}
			o := both[who][0]
			both[who] = both[who][1:]
			if off {
				sink.apply(o.To)
			} else if sink.deliver(o, 0, 3) == Disagree {
				return fmt.Sprintf("a delivery of position %d stops", o.To)
			}
		}
		if harm := sink.exactly(3); harm != "" {
			return harm
		}
	}
	return ""
}

// broker is a model of transactions: a start of a producer ends what is open under
// its id, and what carries the epoch of a producer before is refused.
type broker struct {
	table
	epochs map[string]int
	open   map[string][]Position // rows that wait for their transaction's end
}

func newBroker() *broker {
	return &broker{table: *made(), epochs: map[string]int{}, open: map[string][]Position{}}
}

func (b *broker) start(id string) (producer int) {
	b.epochs[id]++
	delete(b.open, id)
	return b.epochs[id]
}

func (b *broker) write(id string, producer int, to Position) {
	if producer == b.epochs[id] {
		b.open[id] = append(b.open[id], to)
	}
}

// end ends a transaction with the record of a position.
func (b *broker) end(id string, producer int, record Position) {
	if producer != b.epochs[id] || len(b.open[id]) == 0 {
		return
	}
	b.rows = append(b.rows, b.open[id]...)
	delete(b.open, id)
	b.record = &SinkRecord{Place: Place{Position: record}, ID: "made"}
}

// readBeforeStart: the end of position 1's transaction is still under way.
func readBeforeStart(off bool) string {
	b := newBroker()
	producer := b.start("job")
	b.write("job", producer, 1)
	late := func() { b.end("job", producer, 1) }
	owed, _ := OwedBy(data("main", 0, 1), "out")
	var read DeliveryView
	next := 0
	if off {
		read = b.view(owed, 0, 1)
		late()
		next = b.start("job")
	} else {
		next = b.start("job")
		late()
		read = b.view(owed, 0, 1)
	}
	if step, _ := DecideDelivery(read); step == Apply {
		b.write("job", next, 1)
		b.end("job", next, 1)
	}
	return b.exactly(1)
}

// ownTransactionalID: main's process pauses with an open transaction; n goes on.
func ownTransactionalID(off bool) string {
	b := newBroker()
	old, own := "job/0.0/out", "job/0.0/out"
	if off {
		own = "job/0.0/out/n"
	}
	producer := b.start(old)
	b.write(old, producer, 1)
	next := b.start(own)
	owed, _ := OwedBy(data("main", 0, 1), "out")
	step, _ := DecideDelivery(b.view(owed, 0, 1))
	b.end(old, producer, 1) // main's process wakes
	if step == Apply {
		b.write(own, next, 1)
		b.end(own, next, 1)
	}
	return b.exactly(1)
}

// sameProducer: a late end meets the half of a second try, whose process then dies.
func sameProducer(off bool) string {
	b := newBroker()
	producer := b.start("job")
	next := producer // the broker has given the first transaction up; its end is under way
	if !off {
		next = b.start("job")
	}
	b.write("job", next, 1) // two rows make the delivery; the record comes with the second
	if producer == b.epochs["job"] {
		b.rows = append(b.rows, b.open["job"]...) // the late end
		delete(b.open, "job")
	}
	last := b.start("job")
	o, _ := OwedBy(data("main", 0, 1), "out")
	if step, _ := DecideDelivery(b.view(o, 0, 1)); step == Apply {
		b.write("job", last, 1)
		b.write("job", last, 2)
		b.end("job", last, 1)
	}
	return b.exactly(2)
}

// noRowToLock: two processes select the row for update before there is one. A row
// that is there is locked by the first of them, and the second reads what that has
// left.
func noRowToLock(off bool) string {
	sink := made()
	if off {
		sink.record = nil
	}
	o, _ := OwedBy(data("main", 0, 1), "out")
	decide := func() DeliveryStep {
		if off && sink.record == nil {
			return Apply // none yet: the first delivery
		}
		step, _ := DecideDelivery(sink.view(o, 0, 1))
		return step
	}
	locked := sink.record != nil
	first := decide()
	second := Skip
	if !locked {
		second = decide() // at the same time
	}
	if first == Apply {
		sink.apply(1)
	}
	if locked {
		second = decide() // once the first has committed
	}
	if second == Apply {
		sink.apply(1)
	}
	return sink.exactly(1)
}

// pausedWithLock: the process that holds the row is stopped. The server ends a
// session that is idle in a transaction for too long.
func pausedWithLock(off bool) string {
	held, sink := true, made()
	o, _ := OwedBy(data("main", 0, 1), "out")
	for range 10 { // seconds of waiting
		if !off {
			held = false // idle_in_transaction_session_timeout
		}
		if !held && sink.deliver(o, 0, 1) == Apply {
			return sink.exactly(1)
		}
	}
	return "nobody gets the row, for ever"
}

// rowComesLate: the row is made by the first delivery, and lost before a manifest
// has confirmed that.
func rowComesLate(off bool) string {
	sink := made()
	if off {
		sink.record = nil
	}
	o, _ := OwedBy(data("main", 0, 1), "out")
	for range 2 {
		if off && sink.record == nil {
			sink.apply(1)
		} else {
			sink.deliver(o, 0, 1)
		}
		sink.record = nil // lost
	}
	return sink.exactly(1)
}

// recordMadeAgain: the record is lost after two deliveries, and a zombie that has
// seen neither makes it anew.
func recordMadeAgain(off bool) string {
	sink := made()
	sink.apply(1)
	sink.record = &SinkRecord{ID: "made by the zombie"}
	o, _ := OwedBy(data("main", 0, 1), "out")
	view := sink.view(o, 0, 1)
	if off {
		view.Record = &SinkRecord{ID: view.ID}
	}
	if step, _ := DecideDelivery(view); step == Apply {
		sink.apply(1)
	}
	return sink.exactly(1)
}

// recordOfOneThatIsBack: n goes live at 5 with a new sink, whose record nobody has noted
// when m, which lacks it, goes live. r has the sink again, from 7 on.
func recordOfOneThatIsBack(off bool) string {
	cut := cutOf("r", 7, 7)
	cut.Sinks, cut.Settled = []string{"out"}, map[string]SinkConsent{"out": {Gap: Consented}}
	final := cut.Finals[FirstTask]
	final.Manifest.Sinks = map[string]SinkState{"out": {Start: 5, Confirmed: 5, Dropped: ToDrain}}
	noted, err := cut.Note(cut.Own[FirstTask].Manifest, final)
	if err != nil {
		return err.Error()
	}
	s := noted.Sinks["out"]
	sink := &table{record: &SinkRecord{Place: Place{Position: s.RecordAt()}, ID: "made"}}
	if off {
		sink.record.Position = s.Start
	}
	first := data("r", 2, 8)
	s.Record = "made"
	first.Sinks["out"] = s
	owed, err := OwedOver([]Piece{
		{Link{Live: 0, Branch: "n", From: 5, To: 5}, nil},
		{Link{Live: 1, Branch: "m", From: 5, To: 7, Sinks: map[string]SinkConsent{"out": {Dropped: ToDrain}}}, nil},
		{Link{Live: 2, Branch: "r", From: 7, To: AllPositions, Sinks: map[string]SinkConsent{"out": {Gap: Consented}}}, []Manifest{first}},
	}, "out", s)
	if err != nil {
		return err.Error()
	}
	for _, o := range owed {
		if sink.deliver(o, s.Confirmed, 8) == Disagree {
			return "the job stops at its first delivery, and nothing was lost"
		}
	}
	if !slices.Equal(sink.rows, []Position{8}) {
		return fmt.Sprintf("the sink has positions %v", sink.rows)
	}
	return ""
}

// partsByPosition: a delivery in two parts is cut short between them.
func partsByPosition(off bool) string {
	places := []Place{{0, 0}, {0, 1}, {1, 0}}
	record := places[0]
	var applied []int
	for try := range 2 {
		for part := range 2 {
			v := DeliveryView{From: places[part], To: places[part+1], Record: &SinkRecord{Place: record, ID: "made"}, ID: "made", Head: 1}
			if off {
				v.From.Part, v.To.Part, v.Record.Part = 0, 0, 0
				v.From.Position, v.To.Position = 0, 1
			}
			if step, _ := DecideDelivery(v); step == Apply {
				applied, record = append(applied, part), places[part+1]
				if off && part == 0 {
					record = Place{}
				}
			}
			if try == 0 {
				break // killed behind the first part
			}
		}
	}
	if !slices.Equal(applied, []int{0, 1}) {
		return fmt.Sprintf("parts %v were applied, want each once", applied)
	}
	return ""
}

// unharmed is a sink that was delivered up to 2 and confirmed, to which something
// then happens; naive decides without the rule. The sink must not be written to.
func unharmed(happens func(*table), view func(*DeliveryView), naive bool) string {
	sink := made()
	sink.apply(1)
	sink.apply(2)
	happens(sink)
	had := len(sink.rows)
	o, _ := OwedBy(data("main", 0, 3), "out")
	v := sink.view(o, 2, 3)
	v.HeadManifest = "three"
	view(&v)
	step, _ := DecideDelivery(v)
	if naive { // whatever is not there is to be delivered; whatever is there is fine
		step = Apply
		if sink.record != nil && sink.record.Position >= 3 {
			step = Skip
		}
	}
	switch {
	case step == Apply:
		return fmt.Sprintf("position 3 is put on top of what the sink has lost; %d deliveries were there", had)
	case step == Skip:
		return "position 3 counts as delivered, and is not there"
	}
	return ""
}

func same(*DeliveryView) {}

func lostRecord(off bool) string {
	return unharmed(func(s *table) { s.record = nil }, same, off)
}

func restoredSink(off bool) string {
	return unharmed(func(s *table) {
		s.rows = s.rows[:1]
		s.record = &SinkRecord{Place: Place{Position: 1}, ID: "made"}
	}, same, off)
}

func sinkAhead(off bool) string {
	return unharmed(func(s *table) { s.record.Position = 7 }, same, off)
}

func otherManifest(off bool) string {
	return unharmed(func(s *table) { s.record.Position, s.record.Manifest = 3, "another" }, same, off)
}

// outgrownSink: the store went back to before the sink's last delivery and has grown
// beyond it since, so that other rows stand under the sink's position.
func outgrownSink(off bool) string {
	sink := made()
	sink.apply(1)
	sink.record.Manifest = "one, as it was"
	for p := Position(1); p <= 3; p++ {
		o, _ := OwedBy(data("main", 0, p), "out")
		v := sink.view(o, 0, 3)
		if !off {
			v.Manifest = "as it is"
		}
		switch step, _ := DecideDelivery(v); step {
		case Disagree:
			return ""
		case Apply:
			return "rows of another history follow those that the sink has"
		}
	}
	return "nothing was told"
}

// takenFiles: n prepares position 1's file and pauses; main names it and the next;
// the consumer takes the first away; n names it again.
func takenFiles(off bool) string {
	folder := map[Position]bool{}
	var got []Position
	highest := Position(0)
	take := func() {
		for _, p := range slices.Sorted(maps.Keys(folder)) {
			if p <= highest && !off {
				continue // the contract: what is not above the highest taken is no news
			}
			if p == 2 {
				continue // the newest stays
			}
			got, highest = append(got, p), max(highest, p)
			delete(folder, p)
		}
	}
	folder[1], folder[2] = true, true
	take()
	folder[1] = true
	take()
	if !slices.Equal(got, []Position{1}) {
		return fmt.Sprintf("the consumer got positions %v", got)
	}
	return ""
}

// backlog is OwedOver for manifests of live branches alone, by ascending position,
// each of the generation that its position belongs to.
func backlog(chain []Manifest, sink string, confirmed Position) ([]Owed, error) {
	w := owing{sink: sink, at: confirmed}
	for _, m := range chain {
		if m.Live == nil {
			continue
		}
		if err := w.add(Link{Live: *m.Live, To: AllPositions}, m.Position-1, m); err != nil {
			return nil, err
		}
	}
	return w.owed, nil
}
