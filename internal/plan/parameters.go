package plan

import (
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// rule says what it means that a parameter of a part has another value.
type rule struct {
	verdict Verdict
	// effect says what comes of it, do what there is to do.
	effect, do string
	// dated tells that a source's offsets belong to it: from there on it holds.
	dated bool
}

// The rules, by what a parameter decides about.
var (
	decoding  = rule{verdict: Resolves, effect: "holds for what has not been read yet", dated: true}
	rendering = rule{verdict: Resolves, effect: "holds for what is delivered from now on; what has been stays as it is"}
	shown     = rule{verdict: Resolves, effect: "the next delivery sees to it; a view of the name before stays where it points"}
	elsewhere = rule{verdict: Refused, effect: "what it has written would be told apart by nobody", do: newSink}
	another   = rule{verdict: Refused, effect: "what is stored came of the other", do: "give the state a new name"}
)

// The ways out for what can't go on under its name.
const (
	newSink     = "give the sink a new name, under which it begins anew"
	newSource   = "give the source a new name, under which it begins at its start; if what was read lies there as well, give the states that have counted it new names too"
	keepReading = "keep them in what it reads; a source of a new name reads from its start, for states of new names if they have counted any of that"
)

// parameters has a rule for each parameter of each kind of part. A name that ends
// in a dot or a space stands for all that begin so. What a table lacks has the
// rule of the name "".
var parameters = map[Part]map[string]rule{
	// What a source reads (topics, pattern, target) is compared by what it covers.
	SourcePart: {
		"": decoding,
	},
	TimePart: {
		"lateness":   {verdict: Resolves, effect: "holds for what is read from now on"},
		"max ahead":  {verdict: Resolves, effect: "holds for what is read from now on; times that have moved the watermark have moved it"},
		"idle after": {verdict: Resolves, effect: "holds from the next epoch on"},
		"generator":  {verdict: Resolves, effect: "goes on from the watermarks that there are, which never go back, with the next batch of each partition"},
		"from":       {verdict: Resolves, effect: "holds for what is read from now on; the watermark stays where it is"},
		"":           {verdict: Resolves},
	},
	OperatorPart: {
		"": another,
		// What a window's version may leave out where it is nothing: to have it is
		// a change as well.
		epoch.SharedPanes: another,
		epoch.Firings:     {verdict: Resolves, effect: "holds from where the watermark stands: a window that has ended by then is put out once more only if a late record changes it"},
	},
	SinkPart: {
		"":          elsewhere,
		"target":    elsewhere,
		"mode":      elsewhere,
		"key":       elsewhere, // columns, or the codec of keys
		"key.":      elsewhere,
		"value":     elsewhere, // the codec of values
		"value.":    elsewhere,
		"partition": elsewhere, // the function that partitions
		"type of ":  elsewhere, // a column
		"headers":   rendering,
		"time":      rendering,
		"view":      shown, // where readers find the rows
	},
}

// ruleOf is the rule of a parameter, and whether that has one of its own.
func ruleOf(part Part, name string) (r rule, own bool) {
	rules := parameters[part]
	if r, ok := rules[name]; ok {
		return r, true
	}
	for _, end := range []string{".", " "} {
		for i := len(name); i > 0; i = strings.LastIndex(name[:i], end) {
			if r, ok := rules[name[:min(i+1, len(name))]]; ok {
				return r, true
			}
		}
	}
	return rules[""], false
}

// compareParameters adds what parameters of a part have changed, but for those
// that skip tells.
func (c *comparison) compareParameters(l *Line, old, now epoch.Part, skip func(name string) bool) {
	for name := range both(old.Parameters, now.Parameters) {
		was, had := old.Parameters[name]
		is, has := now.Parameters[name]
		if was == is && had == has || skip(name) {
			continue
		}
		r, own := ruleOf(l.Part, name)
		if !had && !own && r.verdict >= Replay {
			// A later release describes more than the one that ran did.
			l.Note(fmt.Sprintf("%s is %q; the version before said nothing of it", strings.TrimSpace(name), is))
			continue
		}
		cause := fmt.Sprintf("%s, %s: %s → %s", l.Name, strings.TrimSpace(name), orNone(was, had), orNone(is, has))
		if r.verdict >= Replay {
			cause += ": " + r.effect
		} else {
			l.Note(r.effect)
		}
		if r.dated {
			c.noteOffsets(l)
		}
		l.Add(r.verdict, cause, r.do)
	}
}

func orNone(value string, has bool) string {
	if !has {
		return "none"
	}
	return fmt.Sprintf("%q", value)
}
