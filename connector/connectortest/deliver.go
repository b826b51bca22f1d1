package connectortest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

// key is whose record the suite makes.
var key = connector.RecordKey{JobID: "5fe2b1a09d8c4e37", Task: "0.0", Sink: "suite"}

// stage is a place in a sink's deliveries.
type stage struct {
	position connector.Position
	part     int
}

func stageOf(r *connector.SinkRecord) stage { return stage{r.Position, r.Part} }

func (s stage) before(o stage) bool {
	return s.position < o.position || s.position == o.position && s.part < o.part
}

// delivery is what is to be written between two stages.
type delivery struct {
	from, to stage
	changes  []Change
}

// next is a delivery of one part.
func next(position connector.Position, changes []Change) delivery {
	return delivery{stage{position - 1, 0}, stage{position, 0}, changes}
}

// record is what the sink is to remember of a delivery.
func record(id string, at stage) connector.SinkRecord {
	hash := sha256.Sum256(fmt.Appendf(nil, "manifest %v", at))
	return connector.SinkRecord{
		Position: at.position, Part: at.part, ID: id, Job: "suite", Target: "target",
		Live: 3, Branch: "main", Epoch: uint64(at.position) + 10, Manifest: hex.EncodeToString(hash[:]),
	}
}

// frozen is a delivery as a sink gets it.
func (s *sink) frozen(t *testing.T, id string, d delivery) *connector.Delivery {
	key, row := s.key, s.row
	if len(d.changes) == 0 {
		key, row = nil, nil // an outbox without rows has no schemas
	}
	return &connector.Delivery{
		Record: record(id, d.to),
		Key:    key,
		Schema: row,
		Decide: func(found *connector.SinkRecord) connector.Verdict { return decide(id, d, found) },
		Rows: func(yield func(connector.Row, error) bool) {
			for _, c := range d.changes {
				r := s.encode(t, c)
				if !yield(r, nil) {
					return
				}
				// A row's bytes hold until the next.
				fill(r.Key)
				fill(r.Row)
				fill(r.Wire)
			}
		},
	}
}

// decide is what an engine decides.
func decide(id string, d delivery, found *connector.SinkRecord) connector.Verdict {
	switch {
	case found == nil || found.ID != id:
		return connector.Disagree
	case stageOf(found) == d.from:
		return connector.Apply
	case !stageOf(found).before(d.to):
		return connector.Skip
	default:
		return connector.Disagree
	}
}

// open opens the sink as a process of its own would.
func (s *sink) open(t *testing.T) connector.Target {
	t.Helper()
	return s.openWith(t, s.opening)
}

func (s *sink) openWith(t *testing.T, o connector.Opening) connector.Target {
	t.Helper()
	target, err := s.Open(t.Context(), o, key)
	if err != nil {
		t.Fatalf("opening the sink: %v", err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// make makes the record at a start and returns the target.
func (s *sink) make(t *testing.T, start connector.Position) connector.Target {
	t.Helper()
	target := s.open(t)
	first := record("first", stage{start, 0})
	made, err := target.Make(t.Context(), first)
	if err != nil {
		t.Fatalf("making the record: %v", err)
	}
	if !reflect.DeepEqual(made, first) {
		t.Fatalf("made the record %+v, expected %+v", made, first)
	}
	return target
}

// deliver delivers and expects a verdict.
func (s *sink) deliver(t *testing.T, target connector.Target, d delivery, expected connector.Verdict) {
	t.Helper()
	verdict, _, err := target.Deliver(t.Context(), s.frozen(t, "first", d))
	if err != nil {
		t.Fatalf("delivering %v: %v", d.to, err)
	}
	if verdict != expected {
		t.Fatalf("delivering %v: verdict %s, expected %s", d.to, verdictName(verdict), verdictName(expected))
	}
}

// stands expects a record at a stage.
func (s *sink) stands(t *testing.T, target connector.Target, at stage) {
	t.Helper()
	found, err := target.Record(t.Context())
	if err != nil {
		t.Fatalf("reading the record: %v", err)
	}
	if want := record("first", at); found == nil || !reflect.DeepEqual(*found, want) {
		t.Fatalf("the record is %+v, expected %+v", found, want)
	}
}

// sees expects that a consumer has got all of these and nothing else.
func (s *sink) sees(t *testing.T, what string, parts ...[]Change) {
	t.Helper()
	var all []Change
	for _, p := range parts {
		all = append(all, p...)
	}
	compareLines(t, what, s.view(t), s.want(all))
}

func verdictName(v connector.Verdict) string {
	switch v {
	case connector.Apply:
		return "apply"
	case connector.Skip:
		return "skip"
	case connector.Disagree:
		return "disagree"
	}
	return fmt.Sprint(int(v))
}
