package plan

// Trial is what came of trying a state's way on stored entries.
type Trial struct {
	// Entries is how many are stored, Tried how many of them were tried, Failed
	// how many of these can't be carried over. In a sample Entries is an upper bound:
	// it counts what was written over or deleted since, too.
	Entries int64 `json:"entries"`
	Tried   int64 `json:"tried"`
	Failed  int64 `json:"failed"`
	// All tells that all entries were tried because that was asked for.
	All bool `json:"all"`
	// Failures are the first that failed, at most 20, with their keys.
	Failures []Failure `json:"failures,omitempty"`
	// Dropped counts those that a migration of keys drops.
	Dropped int64 `json:"dropped,omitzero"`
	// Before and After are the bytes of what was tried and did not fail, encoded.
	Before int64 `json:"bytes_before"`
	After  int64 `json:"bytes_after"`
	// Seconds is about how long it takes to carry all entries over, as the tried ones
	// went; 0 if they stay as they are.
	Seconds float64 `json:"seconds"`
	// Meet counts entries that come to a key that another has come to, without a
	// function that puts them together; Meeting are some of these keys, at most 20.
	Meet    int64    `json:"meet,omitzero"`
	Meeting []string `json:"meeting,omitempty"`
	// MeetUnknown tells that entries may meet and that it was not looked for: it
	// takes all of them.
	MeetUnknown bool `json:"meet_unknown,omitzero"`
}

// Failure is an entry that can't be carried over.
type Failure struct {
	Key string `json:"key"`
	Why string `json:"why"`
}
