package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Plan says what becomes of a job when a build goes on from an epoch.
type Plan struct {
	// Job is the job's name, At the epoch that it was made for.
	Job string
	At  epoch.At
	// Lines has one line for each part, those of one kind together.
	Lines []*Line

	partial map[string]epoch.Partial
	windows map[string]epoch.Windows // by operator
	tables  map[string][]string      // by state, the sinks with its table's rows
}

// Line is what becomes of a part of the job.
type Line struct {
	Part    Part    `json:"part"`
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Causes are all differences that matter, each with its path.
	Causes []string `json:"causes,omitempty"`
	// Do says what there is to do; "" for nothing.
	Do string `json:"do,omitempty"`
	// Flags are those that would give the consents that are lacking.
	Flags []string `json:"flags,omitempty"`
	// Notes are worth knowing, and decide nothing.
	Notes []string `json:"notes,omitempty"`
	// Refusals say what a run is refused for, each for itself.
	Refusals []string `json:"refusals,omitempty"`
	// Trial is what came of trying it on stored entries; nil if that was not done.
	Trial *Trial `json:"trial,omitempty"`
}

// Add adds a cause, with its verdict and what there is to do about it. From
// [Replay] on it is a refusal as well.
func (l *Line) Add(v Verdict, cause, do string) {
	l.raise(v, do)
	l.Causes = append(l.Causes, cause)
	if v >= Replay {
		l.refuse(cause, do)
	}
}

// Note adds what is worth knowing.
func (l *Line) Note(text string) {
	if !slices.Contains(l.Notes, text) {
		l.Notes = append(l.Notes, text)
	}
}

// needs adds a cause that needs a consent, which is not given.
func (l *Line) needs(flag, name, cause, refusal string) {
	l.raise(Consent, "")
	l.Causes = append(l.Causes, cause)
	l.Flags = append(l.Flags, flag+" "+name)
	l.Refusals = append(l.Refusals, refusal)
	if l.Verdict == Consent {
		l.Do = "allow it with " + strings.Join(l.Flags, " ")
	}
}

// raise makes the verdict at least v. What is to be done about a lesser one is no
// help any more.
func (l *Line) raise(v Verdict, do string) {
	if v > l.Verdict {
		l.Verdict, l.Do = v, do
	} else if v == l.Verdict && do != "" && !strings.Contains(l.Do, do) {
		l.Do = strings.TrimPrefix(l.Do+"; "+do, "; ")
	}
}

func (l *Line) refuse(cause, do string) {
	if do != "" {
		cause += "; " + do
	}
	l.Refusals = append(l.Refusals, cause)
}

// Line returns that of a part, or nil.
func (p *Plan) Line(part Part, name string) *Line {
	for _, l := range p.Lines {
		if l.Part == part && l.Name == name {
			return l
		}
	}
	return nil
}

// Worst is the worst verdict of all lines.
func (p *Plan) Worst() Verdict {
	worst := Same
	for _, l := range p.Lines {
		worst = max(worst, l.Verdict)
	}
	return worst
}

// ExitCode is that of the command plan.
func (p *Plan) ExitCode() int { return p.Worst().ExitCode() }

// Refusals are what a run is refused for, a text each, sorted: none if it may go
// on.
func (p *Plan) Refusals() (all []string) {
	for _, l := range p.Lines {
		for _, r := range l.Refusals {
			if l.Part != KeyPart && l.Part != FlagPart { // whose texts say what they are about
				r = string(l.Part) + " " + r
			}
			all = append(all, r)
		}
	}
	slices.Sort(all)
	return all
}

// Refuses tells whether a run is refused.
func (p *Plan) Refuses() bool {
	return slices.ContainsFunc(p.Lines, func(l *Line) bool { return len(l.Refusals) > 0 })
}

// Partial are the states that are not what they would be had they seen all of
// their inputs, as the manifest keeps it.
func (p *Plan) Partial() map[string]epoch.Partial { return maps.Clone(p.partial) }

// Windows are how far the windows of operators have come, as the manifest keeps it:
// those that are of several definitions from here on have these.
func (p *Plan) Windows() map[string]epoch.Windows {
	var all map[string]epoch.Windows
	for operator, w := range p.windows {
		if w == (epoch.Manifest{}).WindowsOf(operator) {
			continue // nothing has come to them yet
		}
		if all == nil {
			all = map[string]epoch.Windows{}
		}
		all[operator] = w
	}
	return all
}
