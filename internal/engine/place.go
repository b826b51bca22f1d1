package engine

// Place orders what comes of one batch, so that the order in which anything is
// applied or put out depends on the inputs alone: not on the number of shards,
// nor on where a batch was cut.
//
// The upper 24 bits of Hi are the number of the record in its batch (at an
// epoch's end: 8 bits for the table and 16 for the key's slot). Each operator
// that hands records on to another stage adds a level: the first the lower 40
// bits of Hi, the second and third 32 bits each of Lo. A stage whose input is
// at the last level can't hand on any more, which is refused when the job is
// built.
type Place struct{ Hi, Lo uint64 }

const (
	recordShift = 40 // of the record's number in Hi
	slotShift   = 40 // of the slot in Hi, at an epoch's end
	tableShift  = 56 // of the table in Hi, at an epoch's end

	// maxLevel is the last level that has room in a Place.
	maxLevel = 2
	// maxBatchRecords is the number of records that Place can tell apart.
	// The last numbers are for what is done behind a batch's records in each stage.
	maxBatchRecords = 1<<(64-recordShift) - maxLevel - 2
	// maxTables is the number of tables of one stage whose changes are used.
	maxTables = 1 << (64 - tableShift)
)

// record is the number of the input record that the place goes back to.
func (p Place) record() uint64 { return p.Hi >> recordShift }

// child returns the place of the n-th thing that comes of what is at p, if
// what is at p has come through the given number of levels.
func (p Place) child(level uint8, n uint64) Place {
	switch level {
	case 0:
		return Place{p.Hi | n, 0}
	case 1:
		return Place{p.Hi, n << 32}
	default:
		return Place{p.Hi, p.Lo | n}
	}
}

// before tells whether p comes before q. Places are unique within a batch, and
// their order is the one in which a single thread that followed each record to
// its end would have met them.
func (p Place) before(q Place) bool {
	return p.Hi < q.Hi || p.Hi == q.Hi && p.Lo < q.Lo
}
