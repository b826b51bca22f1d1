package plan

import "time"

// Trial is what came of trying a state's way on stored entries.
type Trial struct {
	// Entries is how many are stored, Tried how many of them were tried, Failed
	// how many of these can't be carried over.
	Entries int64 `json:"entries"`
	Tried   int64 `json:"tried"`
	Failed  int64 `json:"failed"`
	// Failures are the first that failed, with their keys.
	Failures []Failure `json:"failures,omitempty"`
	// Dropped counts those that a migration of keys drops.
	Dropped int64 `json:"dropped,omitzero"`
	// Before and After are the bytes of what was tried, encoded.
	Before int64 `json:"bytes_before"`
	After  int64 `json:"bytes_after"`
	// Whole is how long all entries will take, as the tried ones went.
	Whole time.Duration `json:"whole_nanoseconds"`
	// Meet counts entries that come to one key without a function that puts them
	// together. It is known only if all entries were tried.
	Meet int64 `json:"meet,omitzero"`
}

// Failure is an entry that can't be carried over.
type Failure struct {
	Key string `json:"key"`
	Why string `json:"why"`
}
