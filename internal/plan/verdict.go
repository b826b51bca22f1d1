package plan

import "fmt"

// Verdict says what becomes of a part of a job. Of two the greater is the worse.
type Verdict uint8

// The verdicts.
const (
	// Same: nothing that matters has changed.
	Same Verdict = iota
	// Resolves: carried over by Avro's rules, or without any effect on what there
	// is.
	Resolves
	// Migrates: carried over by the author's functions.
	Migrates
	// Partial: it begins empty, or has lost a part of its past.
	Partial
	// Consent: data would be dropped, which needs the flag that names it.
	Consent
	// Replay: it can't be carried over as it is: a migration helps, or a new beginning.
	Replay
	// Refused: neither.
	Refused
)

var verdicts = [...]string{"same", "resolves", "migrates", "partial", "consent", "replay", "refused"}

// exitCodes are those of the command plan, by the worst verdict.
var exitCodes = [...]int{0, 0, 20, 21, 22, 23, 24}

// String is the verdict in a word.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, word := range verdicts {
		if word == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("verdict %q: expected one of %v", text, verdicts)
}

// ExitCode is that of the command plan, if this is the worst verdict.
func (v Verdict) ExitCode() int { return exitCodes[min(int(v), len(exitCodes)-1)] }

// Part says what a line of a plan is about.
type Part string

// The parts.
const (
	SourcePart   Part = "source"
	TimePart     Part = "time" // an event time
	OperatorPart Part = "operator"
	KeyPart      Part = "key" // of an operator
	StatePart    Part = "state"
	TimerPart    Part = "timer"
	SinkPart     Part = "sink"
	// BuildPart is this build itself, if another one has replaced it.
	BuildPart Part = "build"
	// FlagPart is a consent that names nothing that needs one.
	FlagPart Part = "flag"
)
