package plan_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// build is a job as a build has it: its version, and its states' carriers.
type build struct {
	epoch.Version
	carriers map[string]carry.Carrier
}

func newBuild() *build {
	return &build{epoch.Version{
		Sources: map[string]epoch.Part{}, Operators: map[string]epoch.Part{}, States: map[string]epoch.StateSchemas{},
		Sinks: map[string]epoch.Part{}, Functions: map[string]string{},
	}, map[string]carry.Carrier{}}
}

// part describes one with parameters, a name and a value in turn.
func part(kind string, inputs []string, parameters ...string) epoch.Part {
	p := epoch.Part{Kind: kind, Inputs: inputs, Parameters: map[string]string{}}
	for i := 0; i < len(parameters); i += 2 {
		p.Parameters[parameters[i]] = parameters[i+1]
	}
	return p
}

// operate adds an operator.
func (b *build) operate(name, kind, function, key string, inputs ...string) {
	b.Operators[name] = epoch.Part{Kind: kind, Inputs: inputs}
	b.Functions[name], b.Functions[name+" key"] = function, key
}

// meanings are what an author says of a state and its key, and of a sorted state its
// limit.
type meanings struct {
	state, key int
	limit      state.Limit
}

// keep adds a state to an operator.
func keep[K comparable, S any](b *build, operator, name, kind string, m meanings, spec carry.Spec[K, S]) {
	keys, err := schema.KeyOf[K]("key")
	must(err)
	value, err := schema.Of[S](name)
	must(err)
	form := state.Form{Name: name, Key: keys.Schema(), Value: value.Schema()}
	schemas := epoch.StateSchemas{Operator: operator, Meaning: m.state, KeyMeaning: m.key, Key: form.Key.String(), Value: form.Value.String()}
	codec := carry.Codec[K, S]{AppendKey: func(dst []byte, k *K) []byte { return keys.Append(dst, *k) }, Value: value}
	if kind != "value" { // rows have the key as their element as well, for want of another
		form.Element, codec.AppendElement = form.Key, codec.AppendKey
		schemas.Kind, schemas.Element = kind, form.Element.String()
		schemas.Limit, schemas.Descending = m.limit.Entries, m.limit.Descending
	}
	b.States[name] = schemas
	c, err := carry.New(carry.Target{Kind: kind, Limit: m.limit, Meaning: m.state, KeyMeaning: m.key, Form: form}, codec, spec)
	must(err)
	b.carriers[name] = c
}

// rows gives a sink the schemas of its rows and, of a table, its keys.
func rows[K comparable, R any](b *build, sink string, table bool) {
	row, err := schema.Of[R]("row")
	must(err)
	p := b.Sinks[sink]
	p.Schemas = map[string]string{"row": row.Schema().String()}
	if table {
		key, err := schema.KeyOf[K]("key")
		must(err)
		p.Schemas["key"] = key.Schema().String()
	}
	b.Sinks[sink] = p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The job that the changes of the tests are of.
type (
	spend struct{ Orders, Cents int64 }
	visit struct {
		Page string
		Tags []tag
	}
	tag struct{ Name string }
	row struct {
		User string
		Cents,
		Orders int64
		Note *string
	}
)

func (s *spend) Add(int) { s.Orders++ }

func firstBuild() *build {
	b := newBuild()
	b.Sources["orders"] = part("kafka", nil, "topics", "orders", "target", "orders", "codec", "json")
	b.Sources["clicks"] = part("file.json", nil, "target", "in/clicks-*.jsonl")
	b.operate("spend", "fold", "main.(*Spend).Add", "main.Order.UserID", "orders")
	keep[string, spend](b, "spend", "spend", "value", meanings{}, carry.Spec[string, spend]{})
	b.operate("refunds", "fold", "main.(*Spend).Sub", "main.Order.SellerID", "orders")
	keep[string, spend](b, "refunds", "refunds", "value", meanings{}, carry.Spec[string, spend]{})
	b.operate("visits", "process", "", "main.Click.UserID", "clicks")
	keep[string, visit](b, "visits", "visits", "value", meanings{}, carry.Spec[string, visit]{})
	keep[string, visit](b, "visits", "pages", "map", meanings{}, carry.Spec[string, visit]{})
	b.Sinks["pg"] = part("postgres", []string{"spend"}, "target", "spend", "mode", "upsert", "key", "user")
	rows[string, row](b, "pg", true)
	b.Sinks["log"] = part("file.json", []string{"orders"}, "target", "out", "mode", "append")
	rows[string, row](b, "log", false)
	b.Sinks["topic"] = part("kafka", []string{"visits"}, "target", "visits", "mode", "append", "key", "none", "value", "json")
	rows[string, row](b, "topic", false)
	b.Functions["pg row"] = "main.spendRow"
	return b
}

// firstHead is where the job stands: at position 40, all delivered.
func firstHead(b *build) epoch.Manifest {
	m := epoch.Manifest{
		Epoch: 41, Position: 40,
		Sources: map[string]epoch.SourceState{
			"orders": {Partitions: map[string]epoch.Offset{"orders/0": {Next: 100}, "orders/1": {Next: 7}}},
			"clicks": {Partitions: map[string]epoch.Offset{"clicks-a.jsonl": {Next: 50}}},
		},
		State: map[string]epoch.StateEntry{}, Sinks: map[string]epoch.SinkState{},
	}
	for name, s := range b.States {
		m.State[name] = epoch.StateEntry{Key: s.Key, Element: s.Element, Value: s.Value, Segments: []epoch.Segment{{Rows: 3}}}
	}
	for name := range b.Sinks {
		m.Sinks[name] = epoch.SinkState{Record: "r", Confirmed: 40}
	}
	return m
}

// change is a change of the job, and what the plan says of it.
type change struct {
	name string
	// before changes the build that ran, head where it stands, after the build that
	// is to go on.
	before, after func(b *build)
	head          func(m *epoch.Manifest)
	drop, gap     []string
	build         epoch.Build
	replace       bool
	follows       bool
	dropped       []string
	// absent are what sinks were that are back after an absence.
	absent map[string][]epoch.Part
	// absentSources are what sources were.
	absentSources map[string][]epoch.Part
	// want has each line that isn't same, as "part name: verdict: cause | cause".
	want []string
	// notes has texts that stand among the notes of a line, "part name: note".
	notes []string
	// refusals are what a run is refused for.
	refusals []string
}

func (c change) plan(t *testing.T) *plan.Plan {
	old, now := firstBuild(), firstBuild()
	if c.before != nil {
		c.before(old)
	}
	head := firstHead(old)
	if c.head != nil {
		c.head(&head)
	}
	if c.after != nil {
		c.after(now)
	}
	return compare(t, old, now, head, c)
}

func compare(t *testing.T, old, now *build, head epoch.Manifest, c change) *plan.Plan {
	t.Helper()
	stored, err := plan.Stored(old.Version, head)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]*carry.Way{}
	for name, carrier := range now.carriers {
		ways[name] = carrier.Find(stored)
	}
	return plan.Compare(plan.Input{
		Job: "spend", At: epoch.At{Job: "spend", Branch: "main", Task: "0.0", Epoch: head.Epoch}, Head: head,
		Old: old.Version, New: now.Version, Ways: ways, Drop: c.drop, Gap: c.gap, Dropped: c.dropped, Absent: c.absent, AbsentSources: c.absentSources, Build: c.build, Replace: c.replace, Follows: c.follows,
	})
}

// without leaves a state, and perhaps its operator, out of a build.
func (b *build) without(operator, state string) {
	delete(b.Operators, operator)
	delete(b.States, state)
	delete(b.carriers, state)
	maps.DeleteFunc(b.Functions, func(part, _ string) bool { return part == operator || part == operator+" key" })
}

// set gives a part a parameter; "" takes it away.
func set(parts map[string]epoch.Part, name, parameter, value string) {
	p := parts[name]
	if p.Parameters = maps.Clone(p.Parameters); p.Parameters == nil {
		p.Parameters = map[string]string{}
	}
	p.Parameters[parameter] = value
	if value == "" {
		delete(p.Parameters, parameter)
	}
	parts[name] = p
}

// inputs gives a part other inputs.
func inputs(parts map[string]epoch.Part, name string, from ...string) {
	p := parts[name]
	p.Inputs = slices.Clone(from)
	parts[name] = p
}

// Functions that migrate.
type oldSpend struct{ Cents int64 }

func fromOld(o oldSpend) (spend, error) { return spend{Cents: o.Cents}, nil }

func intKeys(old int64, s spend) iter.Seq2[string, spend] {
	return func(yield func(string, spend) bool) { yield(fmt.Sprint(old), s) }
}

// rekeying is a migration of keys that are integers.
func rekeying() *carry.Keys[string, spend] {
	return &carry.Keys[string, spend]{Function: "main.intKeys", Open: func(key, _ *schema.Schema) (func(key, element []byte, s spend) (iter.Seq2[string, spend], error), error) {
		keys, err := schema.KeyOf[int64]("key")
		if err != nil || !key.Equal(keys.Schema()) {
			return nil, fmt.Errorf("it takes int64, and stored are %s", key.Word())
		}
		return func(key, _ []byte, s spend) (iter.Seq2[string, spend], error) {
			old, _, err := keys.Decode(key)
			return intKeys(old, s), err
		}, nil
	}}
}

// sourcesOf is a source as builds had it.
func sourcesOf(source string, forms ...func(b *build)) map[string][]epoch.Part {
	absent := map[string][]epoch.Part{}
	for _, form := range forms {
		b := firstBuild()
		form(b)
		absent[source] = append(absent[source], b.Sources[source])
	}
	return absent
}

// sinksOf is a sink as builds had it.
func sinksOf(sink string, forms ...func(b *build)) map[string][]epoch.Part {
	absent := map[string][]epoch.Part{}
	for _, form := range forms {
		b := firstBuild()
		form(b)
		absent[sink] = append(absent[sink], b.Sinks[sink])
	}
	return absent
}
