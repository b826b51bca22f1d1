package epoch

import "fmt"

// Place is how far a sink has been delivered: everything up to a position, and
// a number of parts of the delivery after it.
type Place struct {
	Position Position `json:"position"`
	Part     int      `json:"part,omitzero"`
}

// Less says whether a place comes before another.
func (p Place) Less(q Place) bool {
	return p.Position < q.Position || p.Position == q.Position && p.Part < q.Part
}

// String writes the place for people.
func (p Place) String() string {
	if p.Part == 0 {
		return fmt.Sprintf("position %d", p.Position)
	}
	return fmt.Sprintf("position %d and %d parts of the next delivery", p.Position, p.Part)
}

// RecordAt is where a sink's record is made if no manifest names one (D2): nothing has
// been delivered then, so that the sink stands where its first delivery is to begin.
// That is not the start of one that is back: what it is owed from before, and the gap,
// come first.
func (s SinkState) RecordAt() Position { return s.Confirmed }

// SinkRecord is what a sink itself remembers of deliveries, in its own
// transaction.
type SinkRecord struct {
	Place
	// ID is the record's random id, given when it was made.
	ID string
	// Manifest is the sha256 of the manifest whose outbox was delivered last;
	// empty before the first.
	Manifest string
}

// DeliveryView is what a deliverer knows inside the sink's fence.
type DeliveryView struct {
	// From and To are the delivery: what the sink must have, and has after.
	From, To Place
	// Gap is a position, not before From's, up to which nothing is to be delivered
	// behind From: the sink may stand anywhere between, since what its absence began
	// with was given up. Zero if there is none.
	Gap Position
	// Manifest is the sha256 of the manifest whose outbox the delivery is.
	Manifest string
	// Record is what the sink says; nil if it has none.
	Record *SinkRecord
	// ID is the record's id by the newest manifest, Confirmed the position that
	// it says is delivered.
	ID        string
	Confirmed Position
	// Head is the position of the log's head, HeadManifest the sha256 of the
	// data manifest of that position; empty if it isn't known any more.
	Head         Position
	HeadManifest string
}

// DeliveryStep is what to do about a delivery.
type DeliveryStep int

// The steps of a delivery.
const (
	Apply    DeliveryStep = iota // write the rows and set the record to To
	Skip                         // the sink has them
	Disagree                     // rule D4: look at the log again, then stop and say so
)

// DecideDelivery is rule D3. A record that is missing or has gone back never
// reads as "not delivered". The reason is told with Disagree only.
func DecideDelivery(v DeliveryView) (step DeliveryStep, reason string) {
	r := v.Record
	switch {
	case r == nil:
		return Disagree, fmt.Sprintf("the sink has no delivery record, the log says that record %s was made", v.ID)
	case r.ID != v.ID:
		return Disagree, fmt.Sprintf("the sink's delivery record is %s, the log says %s", r.ID, v.ID)
	case r.Position < v.Confirmed:
		return Disagree, fmt.Sprintf("the sink has %s, the log says that position %d was delivered", r.Place, v.Confirmed)
	case r.Position > v.Head:
		return Disagree, fmt.Sprintf("the sink has %s, the log goes up to position %d only", r.Place, v.Head)
	case r.Position == v.Head && r.Manifest != "" && v.HeadManifest != "" && r.Manifest != v.HeadManifest:
		return Disagree, fmt.Sprintf("the sink has position %d of manifest %.12s, in the log it is manifest %.12s", r.Position, r.Manifest, v.HeadManifest)
	case r.Place == v.To && r.Manifest != "" && v.Manifest != "" && r.Manifest != v.Manifest:
		// The log went back and has grown beyond the sink since, with other epochs.
		return Disagree, fmt.Sprintf("the sink has position %d of manifest %.12s, in the log it is manifest %.12s", r.Position, r.Manifest, v.Manifest)
	case r.Place == v.From, v.From.Less(r.Place) && r.Part == 0 && r.Position <= v.Gap:
		return Apply, ""
	case !r.Less(v.To):
		return Skip, ""
	default:
		return Disagree, fmt.Sprintf("the sink has %s, this delivery goes from %s to %s", r.Place, v.From, v.To)
	}
}
