package plan_test

import (
	"encoding/json/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/plan"
)

// The state's type after changes.
type (
	spendVIP struct {
		Orders, Cents int64
		VIP           bool
	}
	spendShort struct{ Cents int64 }
	spendMixed struct {
		Orders string
		VIP    bool
	}
	spendText   struct{ Orders, Cents string }
	visitTagged struct {
		Page string
		Tags []struct{ Name int64 }
	}
	rowVIP struct {
		User          string
		Cents, Orders int64
		Note          *string
		VIP           bool
	}
	rowMore struct {
		User          string
		Cents, Orders int64
		Note, City    *string
	}
	rowShort struct {
		User          string
		Cents, Orders int64
	}
	rowLess struct {
		User  string
		Cents int64
		Note  *string
	}
	rowText struct {
		User   string
		Cents  string
		Orders int64
		Note   *string
	}
	user     struct{ ID int32 }
	userText struct{ ID string }
	userLong struct{ ID int64 }
)

func spendAs[S any](b *build, m meanings, spec carry.Spec[string, S]) {
	keep(b, "spend", "spend", "value", m, spec)
}

var changes = []change{
	// Nothing that matters.
	{name: "the same build"},
	{name: "functions with other names", after: func(b *build) {
		b.Functions["spend"], b.Functions["spend key"], b.Functions["pg row"] = "main.(*Spend).AddAll", "main.Order.User", "main.rowOf"
	}, notes: []string{
		"operator spend: its function is main.(*Spend).AddAll, and was main.(*Spend).Add",
		"key spend: its function is main.Order.User, and was main.Order.UserID",
		"sink pg: its function is main.rowOf, and was main.spendRow",
	}},
	{name: "a package that moved", after: func(b *build) {
		b.Functions["spend"], b.Functions["spend key"] = "orders.(*Spend).Add", "orders.Order.UserID"
	}},
	{name: "a function without a name", after: func(b *build) { delete(b.Functions, "spend") }},
	{name: "fold to process", after: func(b *build) { b.operate("spend", "process", "main.(*Spend).Add", "main.Order.UserID", "orders") },
		notes: []string{"operator spend: it is a process, and was a fold; its states stay"}},

	// A build that another one has replaced.
	{name: "a replaced build", head: replaced, build: epoch.Build{Version: "v1"}, want: []string{"build spend: refused: spend: this build was replaced; the job runs " + epoch.Build{Version: "v2"}.String()},
		refusals: []string{"--replace runs this build all the same"}},
	{name: "a replaced build, all the same", head: replaced, build: epoch.Build{Version: "v1"}, replace: true,
		notes: []string{"build spend: replaced by " + epoch.Build{Version: "v2"}.String() + "; it runs all the same, as --replace allows"}},
	{name: "an upgrade to a replaced build", head: replaced, build: epoch.Build{Version: "v1"}, follows: true, want: []string{"build spend: refused: spend: this build was replaced; the job runs " + epoch.Build{Version: "v2"}.String()},
		refusals: []string{"upgrade --again upgrades to this build once more"}},
	{name: "an upgrade to a replaced build, once more", head: replaced, build: epoch.Build{Version: "v1"}, follows: true, replace: true,
		notes: []string{"build spend: replaced by " + epoch.Build{Version: "v2"}.String() + "; it is brought back"}},
	{name: "another build than the replaced one", head: replaced, build: epoch.Build{Version: "v3"}},

	// States.
	{name: "a field added", after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spendVIP]{}) },
		want: []string{"state spend: resolves: spend.VIP: added (boolean)"}},
	{name: "a nested type changed", after: func(b *build) {
		keep[string, visitTagged](b, "visits", "visits", "value", meanings{}, carry.Spec[string, visitTagged]{})
	}, want: []string{"state visits: replay: visits.Tags[].Name: string → long: can't be carried over"},
		refusals: []string{"state visits.Tags[].Name: string → long: can't be carried over; give it a migration, or the state a new name, under which it begins empty"}},
	{name: "every difference is told", after: func(b *build) {
		spendAs(b, meanings{}, carry.Spec[string, spendText]{})
		keep[string, visitTagged](b, "visits", "visits", "value", meanings{}, carry.Spec[string, visitTagged]{})
	}, want: []string{
		"state spend: replay: spend.Orders: long → string: can't be carried over | spend.Cents: long → string: can't be carried over",
		"state visits: replay: visits.Tags[].Name: string → long: can't be carried over",
	}, refusals: []string{"spend.Orders", "spend.Cents", "visits.Tags[].Name"}},
	{name: "differences of each sort", after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spendMixed]{}) },
		want:     []string{"state spend: replay: spend.Orders: long → string: can't be carried over | spend.VIP: added (boolean) | spend.Cents: removed (long)"},
		refusals: []string{"spend.Orders"}},
	{name: "a field removed", after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spendShort]{}) },
		want:     []string{"state spend: consent: spend.Orders: removed (long)"},
		refusals: []string{"state spend.Orders: removed (long): data would be lost; allow it with --drop spend.Orders"}},
	{name: "a field removed, by consent", after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spendShort]{}) }, drop: []string{"spend.Orders"},
		want: []string{"state spend: resolves: spend.Orders: removed (long)"}, notes: []string{"state spend: dropped, as --drop spend.Orders allows"}},
	{name: "a state migrates", before: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, oldSpend]{}) },
		after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spend]{Chain: carry.First(fromOld)}) },
		want:  []string{"state spend: migrates: spend: values go through plan_test.fromOld"},
		notes: []string{"sink pg: state spend migrates: rows of keys that don't change stay as the version before has written them, unless --rewrite pg=all"}},
	{name: "keys of another meaning migrate", before: keyed[int64], after: func(b *build) { spendAs(b, meanings{key: 1}, carry.Spec[string, spend]{Keys: rekeying()}) }, want: []string{
		"key spend: migrates: spend, key: long → string, by main.intKeys",
		"sink pg: partial: pg: the keys of state spend migrate: rows of old keys stay",
		"state spend: migrates: spend: entries get new keys by main.intKeys",
	}},
	{name: "a meaning without a migration", after: func(b *build) { spendAs(b, meanings{state: 2}, carry.Spec[string, spend]{}) },
		want:     []string{"state spend: replay: spend: its meaning is 2 and was 0: the values mean something else now, and no migration says what becomes of them"},
		refusals: []string{"spend: its meaning is 2"}},
	{name: "a state of another kind", after: func(b *build) {
		keep[string, visit](b, "visits", "visits", "map", meanings{}, carry.Spec[string, visit]{})
	},
		want:     []string{"state visits: refused: visits: a state of another kind: it was a value state and is a map state"},
		refusals: []string{"state visits: a state of another kind: it was a value state and is a map state; give the state a new name"}},
	{name: "a state removed", after: func(b *build) { b.without("refunds", "refunds") },
		want:     []string{"state refunds: consent: refunds: no operator has it any more"},
		refusals: []string{"state refunds: no operator has it any more: data would be lost; allow it with --drop refunds"}},
	{name: "a state removed, by consent", after: func(b *build) { b.without("refunds", "refunds") }, drop: []string{"refunds"},
		want: []string{"state refunds: resolves: refunds: no operator has it any more"}},
	{name: "a state under another name", after: func(b *build) {
		b.without("refunds", "refunds")
		b.operate("backs", "fold", "main.(*Spend).Sub", "main.Order.SellerID", "orders")
		keep(b, "backs", "backs", "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "refunds"}}})
	}, want: []string{"state backs: resolves: backs: taken over from state refunds"}, notes: []string{"state refunds: taken over by state backs"}},
	{name: "a state that has taken another over", after: func(b *build) {
		keep(b, "spend", "spend", "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "refunds"}}})
	}, notes: []string{`state spend: TakesOver("refunds") has no effect: the state goes on with what is stored under its own name`}},
	{name: "a state that would take over none", after: func(b *build) {
		b.operate("backs", "fold", "main.(*Spend).Sub", "main.Order.SellerID", "orders")
		keep(b, "backs", "backs", "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "refund"}}})
	}, want: []string{"state backs: partial: backs: it begins empty: it has not seen what was read of orders before epoch 42, and never will"},
		notes: []string{`state backs: TakesOver("refund") has no effect: no state of that name is stored`}},
	{name: "a state that is split", after: func(b *build) {
		b.without("refunds", "refunds")
		for _, name := range []string{"backs", "fronts"} {
			b.operate(name, "fold", "main."+name, "main.Order.SellerID", "orders")
			keep(b, name, name, "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "refunds"}}})
		}
	}, want: []string{"state backs: resolves: backs: taken over from state refunds", "state fronts: resolves: fronts: taken over from state refunds"},
		notes: []string{"state refunds: taken over by state backs, fronts"}},
	{name: "a state that can't be taken over", after: func(b *build) {
		b.without("refunds", "refunds")
		b.operate("backs", "fold", "main.(*Spend).Sub", "main.Order.SellerID", "orders")
		keep(b, "backs", "backs", "value", meanings{}, carry.Spec[string, spendText]{Takes: []carry.Taken[spendText]{{Name: "refunds"}}})
	}, want: []string{"state backs: replay: refunds.Orders: long → string: can't be carried over | refunds.Cents: long → string: can't be carried over"},
		refusals: []string{"refunds.Orders", "refunds.Cents"}},
	{name: "a new state", after: func(b *build) {
		b.operate("totals", "fold", "main.add", "main.one", "spend")
		keep(b, "totals", "totals", "value", meanings{}, carry.Spec[string, spend]{})
		b.Sinks["totals"] = part("file.json", []string{"totals"}, "target", "totals", "mode", "append")
		rows[string, row](b, "totals", false)
	}, want: []string{"state totals: partial: totals: it begins empty: it has not seen what was read of orders before epoch 42, and never will"},
		notes: []string{"state totals: incomplete because of it, for ever: sink totals", "sink totals: new; it begins at position 41"}},
	{name: "a new state of a new source", after: func(b *build) {
		b.Sources["logins"] = part("kafka", nil, "topics", "logins", "target", "logins", "codec", "json")
		b.operate("logins_by_user", "fold", "main.add", "main.user", "logins")
		keep(b, "logins_by_user", "logins_by_user", "value", meanings{}, carry.Spec[string, spend]{})
	}, notes: []string{"source logins: new; it begins where the job's code says", "state logins_by_user: new; it begins empty, and nothing of what comes to it has been read yet"}},
	{name: "a new state before anything was processed", head: untouched, after: func(b *build) {
		b.operate("totals", "fold", "main.add", "main.one", "spend")
		keep(b, "totals", "totals", "value", meanings{}, carry.Spec[string, spend]{})
	}},
	{name: "a state that is incomplete already", head: func(m *epoch.Manifest) { m.Partial = map[string]epoch.Partial{"spend": {Why: "began at 7"}} },
		notes: []string{"state spend: incomplete already: began at 7"}},

	// Keys.
	{name: "a wider key", before: keyed[user], after: keyed[userLong], want: []string{
		"state spend: resolves: spend, key.ID: int → long",
	}},
	{name: "another key", before: keyed[user], after: keyed[userText], want: []string{
		"key spend: replay: spend, key.ID: int → string: stored keys can't be carried over without MigrateKeys",
	}, refusals: []string{"spend, key.ID: int → string: stored keys"}},
	{name: "keys migrate", before: keyed[int64], after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spend]{Keys: rekeying()}) }, want: []string{
		"key spend: migrates: spend, key: long → string, by main.intKeys",
		"sink pg: partial: pg: the keys of state spend migrate: rows of old keys stay",
		"state spend: migrates: spend: entries get new keys by main.intKeys",
	}},
	{name: "keys that the migration doesn't take", before: keyed[bool], after: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spend]{Keys: rekeying()}) }, want: []string{
		"key spend: replay: spend, key: can't be carried over by main.intKeys: it takes int64, and stored are boolean",
	}, refusals: []string{"spend, key: can't be carried over by main.intKeys: it takes int64, and stored are boolean"}},
	{name: "another meaning of the key", after: func(b *build) { spendAs(b, meanings{key: 1}, carry.Spec[string, spend]{}) }, want: []string{
		"key spend: replay: spend, key: its meaning is 1 and was 0: the keys mean something else now, and no MigrateKeys says what becomes of them",
	}, refusals: []string{"spend, key: its meaning is 1"}},
	{name: "another element of a map", before: func(b *build) {
		keep[user, visit](b, "visits", "pages", "map", meanings{}, carry.Spec[user, visit]{})
	}, after: func(b *build) {
		keep[userText, visit](b, "visits", "pages", "map", meanings{}, carry.Spec[userText, visit]{})
	}, want: []string{
		"key visits: replay: pages, key.ID: int → string: stored keys can't be carried over without MigrateKeys | pages, element.ID: int → string: stored keys can't be carried over without MigrateKeys",
	}, refusals: []string{"pages, element", "pages, key"}},

	// Functions that are mixed up.
	{name: "functions crossed", after: func(b *build) {
		b.Functions["spend"], b.Functions["refunds"] = "main.(*Spend).Sub", "main.(*Spend).Add"
	}, want: []string{
		"operator refunds: refused: refunds: its function is main.(*Spend).Add, which was that of spend, whose values are of the same type: the two seem to be mixed up",
		"operator spend: refused: spend: its function is main.(*Spend).Sub, which was that of refunds, whose values are of the same type: the two seem to be mixed up",
	}, refusals: []string{"operator refunds: its function", "operator spend: its function"}},
	{name: "functions crossed, of types that differ", before: func(b *build) { spendAs(b, meanings{}, carry.Spec[string, spendVIP]{}) }, after: func(b *build) {
		spendAs(b, meanings{}, carry.Spec[string, spendVIP]{})
		b.Functions["spend"], b.Functions["refunds"] = "main.(*Spend).Sub", "main.(*Spend).Add"
	}},
	{name: "one function for both", after: func(b *build) { b.Functions["spend"] = "main.(*Spend).Sub" }},
	{name: "functions crossed on purpose", after: func(b *build) {
		b.Functions["spend"], b.Functions["refunds"] = "main.(*Spend).Sub", "main.(*Spend).Net"
		spendAs(b, meanings{state: 1}, carry.Spec[string, spend]{Chain: carry.First(func(s spend) (spend, error) { return s, nil }).From(0)})
	}, want: []string{"state spend: migrates: spend: values go through a function without a name"}},
	{name: "key functions exchanged", after: func(b *build) { b.Functions["spend key"] = "main.Order.SellerID" }, want: []string{
		"key spend: refused: spend, key: it is keyed by main.Order.SellerID, by which refunds was keyed: the two seem to be mixed up",
	}, refusals: []string{"spend, key: it is keyed by main.Order.SellerID"}},

	// States under other names that are not what they were.
	{name: "a state under another name, fed by what was read", after: func(b *build) { renamed("main.(*Spend).Sub", "main.Order.SellerID", "orders", "clicks")(b) }, want: []string{
		"operator backs: partial: backs: it has not seen what came of clicks before epoch 42, and never will",
		"state backs: resolves: backs: taken over from state refunds",
	}},
	{name: "states under other names, fed crosswise", after: renamed("main.(*Spend).Sub", "main.Order.SellerID", "clicks"), want: []string{
		"operator backs: partial: backs: it has not seen what came of clicks before epoch 42, and never will",
		"state backs: resolves: backs: taken over from state refunds",
	}},
	{name: "a state under another name with a function and a key of another's", after: func(b *build) {
		renamed("main.(*Spend).Add", "main.Order.UserID", "orders")(b)
		b.Functions["spend"] = "main.(*Spend).Net"
	}, want: []string{
		"key backs: refused: backs, key: it is keyed by main.Order.UserID, by which spend was keyed: the two seem to be mixed up",
		"operator backs: refused: backs: its function is main.(*Spend).Add, which was that of spend, whose values are of the same type: the two seem to be mixed up",
		"state backs: resolves: backs: taken over from state refunds",
	}, refusals: []string{"operator backs: its function", "backs, key: it is keyed by"}},
	{name: "an incomplete state under another name", head: func(m *epoch.Manifest) { m.Partial = map[string]epoch.Partial{"refunds": {Why: "began at 7"}} },
		after: renamed("main.(*Spend).Sub", "main.Order.SellerID", "orders"),
		want:  []string{"state backs: resolves: backs: taken over from state refunds"}, notes: []string{"state backs: incomplete already, as refunds: began at 7"}},

	// What operators get.
	{name: "a source added to an operator", after: func(b *build) {
		b.Sources["returns"] = part("kafka", nil, "topics", "returns", "target", "returns", "codec", "json")
		inputs(b.Operators, "spend", "orders", "returns")
	}, notes: []string{"operator spend: it gets what comes of returns from its start on"}},
	{name: "a source added that was read before", after: func(b *build) { inputs(b.Operators, "spend", "orders", "clicks") },
		want:  []string{"operator spend: partial: spend: it has not seen what came of clicks before epoch 42, and never will"},
		notes: []string{"operator spend: incomplete because of it, for ever: sink pg"}},
	{name: "an operator put in between", after: func(b *build) {
		b.operate("once", "process", "", "main.Order.UserID", "orders")
		keep(b, "once", "once", "value", meanings{}, carry.Spec[string, spend]{})
		inputs(b.Operators, "spend", "once")
	}, want: []string{"state once: partial: once: it begins empty: it has not seen what was read of orders before epoch 42, and never will"},
		notes: []string{"operator spend: it gets nothing more of orders; what came of that stays", "operator spend: it gets what comes of once from now on", "state once: incomplete because of it, for ever: sink pg"}},
	{name: "another source for an operator", after: func(b *build) { inputs(b.Operators, "spend", "clicks") },
		want: []string{"operator spend: partial: spend: it has not seen what came of clicks before epoch 42, and never will"}},
	{name: "an operator's parameter", before: func(b *build) { window(b, "1m0s") }, after: func(b *build) { window(b, "5m0s") },
		want:     []string{`operator spend: refused: spend, window: "1m0s" → "5m0s": what is stored came of the other`},
		refusals: []string{"operator spend, window"}},

	// Sources.
	{name: "a source removed", after: func(b *build) {
		delete(b.Sources, "clicks")
		inputs(b.Operators, "visits", "orders")
	}, want: []string{"operator visits: partial: visits: it has not seen what came of orders before epoch 42, and never will"},
		notes: []string{"source clicks: gone; how far it was read is kept, and it goes on from there if it comes back"}},
	{name: "a source back as it was", before: func(b *build) { delete(b.Sources, "clicks") }, absentSources: sourcesOf("clicks", same),
		notes: []string{"source clicks: back; it goes on from where it stood"}},
	{name: "a source back that reads other files", before: func(b *build) { delete(b.Sources, "clicks") }, absentSources: sourcesOf("clicks", same),
		after:    func(b *build) { set(b.Sources, "clicks", "target", "in/visits-*.jsonl") },
		want:     []string{"source clicks: refused: clicks, files: in/clicks-*.jsonl → in/visits-*.jsonl: clicks-a.jsonl would not be read any more"},
		refusals: []string{"source clicks, files"}},
	{name: "a source back that had two forms", before: func(b *build) { delete(b.Sources, "clicks") },
		absentSources: sourcesOf("clicks", same, func(b *build) { set(b.Sources, "clicks", "target", "in/*.jsonl") }),
		want:          []string{"source clicks: resolves: clicks, files: in/*.jsonl → in/clicks-*.jsonl"},
		notes:         []string{"source clicks: the log does not tell any more which of 2 forms it had last; the one counts that it differs from the most"}},
	{name: "a source back of which nothing is known", before: func(b *build) { delete(b.Sources, "clicks") },
		notes: []string{"source clicks: nothing tells what it was before; see to it that it reads the same"}},
	{name: "a source back", before: func(b *build) { delete(b.Sources, "clicks") }, notes: []string{"source clicks: back; it goes on from where it stood"}},
	{name: "a topic added", after: func(b *build) { set(b.Sources, "orders", "topics", "orders,returns") },
		want:  []string{"source orders: resolves: orders, topics: orders → orders,returns"},
		notes: []string{"source orders: what comes in addition is read from its beginning; what was read goes on"}},
	{name: "a topic exchanged", after: func(b *build) { set(b.Sources, "orders", "topics", "orders_v2") },
		want:     []string{"source orders: refused: orders, topics: orders → orders_v2: orders would not be read any more"},
		refusals: []string{"source orders, topics"}},
	{name: "topics by a pattern that has them", after: func(b *build) {
		set(b.Sources, "orders", "topics", "")
		set(b.Sources, "orders", "pattern", "ord.*")
	}, want: []string{"source orders: resolves: orders, topics: orders → ord.*"}},
	{name: "topics by a pattern that lacks them", after: func(b *build) {
		set(b.Sources, "orders", "topics", "")
		set(b.Sources, "orders", "pattern", "order")
	}, want: []string{"source orders: refused: orders, topics: orders → order: orders would not be read any more"}, refusals: []string{"source orders, topics"}},
	{name: "another codec", after: func(b *build) { set(b.Sources, "orders", "codec", "avro") },
		want:  []string{`source orders: resolves: orders, codec: "json" → "avro"`},
		notes: []string{"source orders: from orders/0 offset 100, orders/1 offset 7 on"}},
	{name: "a stricter codec", after: func(b *build) { set(b.Sources, "orders", "codec.strict", "true") },
		want: []string{`source orders: resolves: orders, codec.strict: none → "true"`}},
	{name: "another connector", after: func(b *build) {
		b.Sources["orders"] = part("file.json", nil, "target", "orders/*.jsonl")
	}, want: []string{"source orders: refused: orders: its connector is file.json, and was kafka: what was read of the one is no place in the other"},
		refusals: []string{"source orders: its connector"}},
	{name: "messages instead of values", after: func(b *build) {
		b.Sources["orders"] = part("kafka.messages", nil, "topics", "orders", "target", "orders", "codec", "json")
	}, want: []string{"source orders: resolves: orders: its connector is kafka.messages, and was kafka"}},
	{name: "files in another folder", after: func(b *build) { set(b.Sources, "clicks", "target", "/data/in/clicks-*.jsonl") },
		want: []string{"source clicks: resolves: clicks, files: in/clicks-*.jsonl → /data/in/clicks-*.jsonl"}},
	{name: "other files", after: func(b *build) { set(b.Sources, "clicks", "target", "in/hits-*.jsonl") },
		want:     []string{"source clicks: refused: clicks, files: in/clicks-*.jsonl → in/hits-*.jsonl: clicks-a.jsonl would not be read any more"},
		refusals: []string{"source clicks, files"}},
	{name: "a source under another name", after: func(b *build) {
		b.Sources["sales"] = b.Sources["orders"]
		delete(b.Sources, "orders")
		inputs(b.Operators, "spend", "sales")
		inputs(b.Operators, "refunds", "sales")
		inputs(b.Sinks, "log", "sales")
	}, want: []string{"source orders: refused: orders: source sales would read from its start what this one has read for state refunds, state spend, sink log: it would count twice"},
		refusals: []string{"source orders: source sales would read"}},
	{name: "files of a source under another name, written otherwise", after: hits("./in/clicks-*.jsonl"), want: []string{readTwice}, refusals: []string{"source hits would read"}},
	{name: "files of a source under another name, of a wider pattern", after: hits("in/*"), want: []string{readTwice}, refusals: []string{"source hits would read"}},
	{name: "files of a source under another name, the whole way", after: hits("/data/in/*.jsonl"), want: []string{readTwice}, refusals: []string{"source hits would read"}},
	{name: "files of a source under another name, of a folder above", after: hits("*/clicks-?.jsonl"), want: []string{readTwice}, refusals: []string{"source hits would read"}},
	{name: "other files of another source", after: hits("in/hits-*")},
	{name: "files of another folder for another source", after: hits("on/clicks-*.jsonl")},
	{name: "files of a folder below for another source", after: hits("in/in/clicks-*.jsonl")},
	{name: "files of another source, for a state of another name", after: func(b *build) {
		hits("in/*")(b)
		b.without("visits", "visits")
		b.without("visits", "pages")
		b.operate("seen", "process", "", "main.Click.UserID", "hits")
		keep(b, "seen", "seen", "value", meanings{}, carry.Spec[string, visit]{})
		inputs(b.Sinks, "topic", "seen")
	}, drop: []string{"visits", "pages"}, want: []string{"state pages: resolves: pages: no operator has it any more", "state visits: resolves: visits: no operator has it any more"}},
	{name: "files of another source, for a state that takes over what has counted them", after: func(b *build) {
		hits("in/*")(b)
		b.without("visits", "visits")
		b.without("visits", "pages")
		b.operate("seen", "process", "", "main.Click.UserID", "hits")
		keep(b, "seen", "seen", "value", meanings{}, carry.Spec[string, visit]{Takes: []carry.Taken[visit]{{Name: "visits"}}})
		inputs(b.Sinks, "topic", "seen")
	}, drop: []string{"pages"}, want: []string{
		"source clicks: refused: clicks: source hits would read from its start what this one has read for state seen: it would count twice",
		"state pages: resolves: pages: no operator has it any more", "state seen: resolves: seen: taken over from state visits",
	}, refusals: []string{"source hits would read"}},
	{name: "a second source of what is read", after: func(b *build) {
		b.Sources["hits"] = part("file.json", nil, "target", "in/*.jsonl")
		inputs(b.Operators, "visits", "clicks", "hits")
	}, want: []string{readTwice}, refusals: []string{"source hits would read"}},
	{name: "a pattern of topics under another name", after: func(b *build) {
		b.Sources["sales"] = part("kafka", nil, "pattern", "ord.*", "target", "ord.*", "codec", "json")
		inputs(b.Operators, "spend", "sales")
	}, want: []string{"source orders: refused: orders: source sales would read from its start what this one has read for state spend: it would count twice"}, refusals: []string{"source sales would read"}},
	{name: "a source back that has read as far", after: func(b *build) {
		delete(b.Sources, "clicks")
		hits("in/*")(b)
	}, head: func(m *epoch.Manifest) { m.Sources["hits"] = m.Sources["clicks"] },
		want: []string{"operator visits: partial: visits: it has not seen what came of hits before epoch 42, and never will"}},

	// Sinks.
	{name: "a sink removed", after: func(b *build) { delete(b.Sinks, "log") }, notes: []string{"sink log: gone; what it has written stays, and it gets nothing more"}},
	{name: "a sink removed with deliveries pending", after: func(b *build) { delete(b.Sinks, "log") },
		head:     func(m *epoch.Manifest) { m.Sinks["log"] = epoch.SinkState{Record: "r", Confirmed: 38} },
		want:     []string{"sink log: refused: log: removed while positions 39 to 40 are to be delivered"},
		refusals: []string{"sink log: removed while positions 39 to 40 are to be delivered; run the build that has it"}},
	{name: "a sink removed with deliveries pending, by a branch", after: func(b *build) { delete(b.Sinks, "log") }, follows: true,
		head:  func(m *epoch.Manifest) { m.Sinks["log"] = epoch.SinkState{Record: "r", Confirmed: 38} },
		notes: []string{"sink log: gone; the build that has it delivers what it is owed at the cut before it ends, unless --drop-deliveries log gives that up"}},
	{name: "a sink back after an absence", before: func(b *build) { delete(b.Sinks, "log") },
		head: func(m *epoch.Manifest) {
			m.Sinks["log"] = epoch.SinkState{Record: "r", Confirmed: 30, Dropped: "consented"}
		},
		want:     []string{"sink log: consent: log: back after an absence, in which it did not get positions 31 to 40"},
		refusals: []string{"sink log: back after an absence, in which it did not get positions 31 to 40; allow that with --gap log"}},
	{name: "a sink back, by consent", before: func(b *build) { delete(b.Sinks, "log") }, gap: []string{"log"},
		head: func(m *epoch.Manifest) {
			m.Sinks["log"] = epoch.SinkState{Record: "r", Confirmed: 30, Dropped: "consented"}
		},
		want: []string{"sink log: resolves: log: back after an absence, in which it did not get positions 31 to 40"}},
	{name: "a sink back as it was", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40), absent: sinksOf("pg", same),
		notes: []string{"sink pg: back; it goes on where it stood"}},
	{name: "a sink back with another target", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40), absent: sinksOf("pg", same),
		after:    func(b *build) { set(b.Sinks, "pg", "target", "spend_v2") },
		want:     []string{`sink pg: refused: pg, target: "spend" → "spend_v2": what it has written would be told apart by nobody`},
		refusals: []string{"sink pg, target"}},
	{name: "a sink back with another target, before it wrote anything", before: func(b *build) { delete(b.Sinks, "pg") }, absent: sinksOf("pg", same),
		head:  func(m *epoch.Manifest) { m.Sinks["pg"] = epoch.SinkState{Confirmed: 40, Dropped: "consented"} },
		after: func(b *build) { set(b.Sinks, "pg", "target", "spend_v2") }},
	{name: "a sink back with a gap and another key", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 30), gap: []string{"pg"},
		absent: sinksOf("pg", same), after: func(b *build) { rows[int64, row](b, "pg", true) },
		want:     []string{"sink pg: refused: pg: back after an absence, in which it did not get positions 31 to 40 | pg, key: string → long: its rows would be told apart by another key"},
		refusals: []string{"sink pg, key"}},
	{name: "a sink back with a column more", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40), absent: sinksOf("pg", same),
		after: func(b *build) { rows[string, rowMore](b, "pg", true) },
		want:  []string{"sink pg: resolves: pg.City: added (nullable string)"}},
	{name: "a sink back with a column less", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40), absent: sinksOf("pg", same),
		after:    func(b *build) { rows[string, rowShort](b, "pg", true) },
		want:     []string{"sink pg: consent: pg.Note: removed (nullable string)"},
		refusals: []string{"sink pg.Note: removed (nullable string): data would be lost; allow it with --drop pg.Note"}},
	{name: "a sink back that had two forms", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40),
		absent: sinksOf("pg", same, func(b *build) { set(b.Sinks, "pg", "target", "spend_v0") }, same),
		want:   []string{`sink pg: refused: pg, target: "spend_v0" → "spend": what it has written would be told apart by nobody`},
		notes:  []string{"sink pg: the log does not tell any more which of 3 forms it had last; the one counts that it differs from the most"}, refusals: []string{"sink pg, target"}},
	{name: "a sink back of which nothing is known", before: func(b *build) { delete(b.Sinks, "pg") }, head: away("pg", 40),
		notes: []string{"sink pg: nothing tells what it was before; see to it that it writes to the same place"}},
	{name: "another table", after: func(b *build) { set(b.Sinks, "pg", "target", "spend_v2") },
		want:     []string{`sink pg: refused: pg, target: "spend" → "spend_v2": what it has written would be told apart by nobody`},
		refusals: []string{"sink pg, target"}},
	{name: "another table before anything was written", after: func(b *build) { set(b.Sinks, "pg", "target", "spend_v2") },
		head: func(m *epoch.Manifest) { m.Sinks["pg"] = epoch.SinkState{} }},
	{name: "another partitioner", after: func(b *build) { set(b.Sinks, "topic", "partition", "function") },
		want: []string{`sink topic: refused: topic, partition: none → "function": what it has written would be told apart by nobody`}, refusals: []string{"sink topic, partition"}},
	{name: "another codec of values and keys", after: func(b *build) {
		set(b.Sinks, "topic", "value", "avro")
		set(b.Sinks, "topic", "key.strict", "true")
	}, want: []string{`sink topic: refused: topic, key.strict: none → "true": what it has written would be told apart by nobody | topic, value: "json" → "avro": what it has written would be told apart by nobody`},
		refusals: []string{"sink topic, key.strict", "sink topic, value"}},
	{name: "headers", after: func(b *build) { set(b.Sinks, "topic", "headers", "function") },
		want: []string{`sink topic: resolves: topic, headers: none → "function"`}},
	{name: "a view", before: func(b *build) { set(b.Sinks, "pg", "view", "public.spend") }, after: func(b *build) { set(b.Sinks, "pg", "view", "public.spends") },
		want: []string{`sink pg: resolves: pg, view: "public.spend" → "public.spends"`}},
	{name: "another connector of a sink", after: func(b *build) {
		b.Sinks["topic"] = part("postgres", []string{"visits"}, "target", "visits", "mode", "append")
		rows[string, row](b, "topic", false)
	}, want: []string{`sink topic: refused: topic, connector: "kafka" → "postgres": what it has written would be told apart by nobody`}, refusals: []string{"sink topic, connector"}},
	{name: "files in another folder and form", after: func(b *build) {
		b.Sinks["log"] = part("file.csv", []string{"orders"}, "target", "elsewhere", "mode", "append")
		rows[string, row](b, "log", false)
	}},
	{name: "a column that may be null", after: func(b *build) { rows[string, rowMore](b, "pg", true) },
		want: []string{"sink pg: resolves: pg.City: added (nullable string)"}, notes: []string{"sink pg: pg.City: null in rows written before"}},
	{name: "a column with a default", after: func(b *build) { rows[string, rowVIP](b, "topic", false) },
		want:  []string{"sink topic: resolves: topic.VIP: added (boolean)"},
		notes: []string{"sink topic: topic.VIP: absent in rows written before; who reads them by the new schema sees false"}},
	{name: "a nullable column removed", after: func(b *build) { rows[string, rowShort](b, "pg", true) },
		want:     []string{"sink pg: consent: pg.Note: removed (nullable string)"},
		notes:    []string{"sink pg: pg.Note: rows that are written keep what stands there"},
		refusals: []string{"sink pg.Note: removed (nullable string): data would be lost; allow it with --drop pg.Note"}},
	{name: "a nullable column removed, by consent", after: func(b *build) { rows[string, rowShort](b, "pg", true) }, drop: []string{"pg.Note"},
		want: []string{"sink pg: resolves: pg.Note: removed (nullable string)"}},
	{name: "columns within columns", before: func(b *build) { rows[string, rowNested](b, "topic", false) }, after: func(b *build) { rows[string, rowNestedLess](b, "topic", false) },
		want:     []string{"sink topic: refused: topic.Items[].City: removed (nullable string) | topic.ByID{}.City: removed (nullable string) | topic.Limits{}.Cents: removed (long): whoever reads the rows knows the other | topic.Limits{}.City: removed (nullable string)"},
		refusals: []string{"topic.Items[].City: removed (nullable string): data would be lost", "topic.ByID{}.City: removed (nullable string): data would be lost", "topic.Limits{}.City: removed (nullable string): data would be lost", "topic.Limits{}.Cents: removed"}},
	{name: "another column removed", after: func(b *build) { rows[string, rowLess](b, "pg", true) },
		want: []string{"sink pg: refused: pg.Orders: removed (long): whoever reads the rows knows the other"}, refusals: []string{"sink pg.Orders: removed (long)"}},
	{name: "a column retyped", after: func(b *build) { rows[string, rowText](b, "pg", true) },
		want: []string{"sink pg: refused: pg.Cents: long → string: whoever reads the rows knows the other"}, refusals: []string{"sink pg.Cents"}},
	{name: "another key of rows", after: func(b *build) { rows[int64, row](b, "pg", true) },
		want: []string{"sink pg: refused: pg, key: string → long: its rows would be told apart by another key"}, refusals: []string{"sink pg, key"}},
	{name: "a table sink of another table", after: func(b *build) { inputs(b.Sinks, "pg", "refunds") },
		want: []string{"sink pg: partial: pg, of: spend → refunds: rows of the one stay, and those of the other come as their keys change"}},
	{name: "a stream sink of another stream", after: func(b *build) { inputs(b.Sinks, "topic", "spend") }, notes: []string{"sink topic: topic, of: visits → spend, from now on"}},
	{name: "a table sink of a table taken over", after: func(b *build) {
		b.without("spend", "spend")
		b.operate("spending", "fold", "main.(*Spend).Add", "main.Order.UserID", "orders")
		keep(b, "spending", "spending", "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "spend"}}})
		inputs(b.Sinks, "pg", "spending")
	}, want: []string{"state spending: resolves: spending: taken over from state spend"}, notes: []string{"sink pg: pg, of: spend → spending, from now on"}},

	// Consents that nothing needs.
	{name: "a slip of the pen", after: func(b *build) { b.without("refunds", "refunds") }, drop: []string{"refund"}, want: []string{
		"flag --drop refund: refused: --drop refund: that is not dropped",
		"state refunds: consent: refunds: no operator has it any more",
	}, refusals: []string{"--drop refund: that is not dropped; name what would be: refunds", "state refunds: no operator has it any more: data would be lost"}},
	{name: "a consent to what stays", drop: []string{"spend"}, want: []string{"flag --drop spend: refused: --drop spend: that is not dropped"},
		refusals: []string{"--drop spend: that is not dropped; nothing would be dropped, so leave it out"}},
	{name: "a consent that was used before", drop: []string{"old"}, dropped: []string{"old", "spend.VIP"}},
	{name: "a gap of a sink that never was", gap: []string{"pgg"}, want: []string{"flag --gap pgg: refused: --gap pgg: there never was such a sink"},
		refusals: []string{"--gap pgg: there never was such a sink"}},
	{name: "a gap of a sink that is there", gap: []string{"pg"}},
}

type (
	rowItem struct {
		Cents int64
		City  *string
	}
	rowLimit  struct{ Cents int64 }
	rowNested struct {
		Items  []rowItem
		ByID   map[int64]rowItem
		Limits *map[string]rowItem
	}
	rowNestedLess struct {
		Items  []rowLimit
		ByID   map[int64]rowLimit
		Limits *map[string]struct{}
	}
)

func replaced(m *epoch.Manifest) {
	m.Build, m.Superseded = epoch.Build{Version: "v2"}, []epoch.Build{{Version: "v1"}}
}

// renamed has the state refunds taken over by backs.
func renamed(function, key string, from ...string) func(b *build) {
	return func(b *build) {
		b.without("refunds", "refunds")
		b.operate("backs", "fold", function, key, from...)
		keep(b, "backs", "backs", "value", meanings{}, carry.Spec[string, spend]{Takes: []carry.Taken[spend]{{Name: "refunds"}}})
	}
}

// Rows of entries that are set aside stay in the tables of their state.
func TestRowsOfWhatIsSetAside(t *testing.T) {
	p := change{}.plan(t)
	p.Attach(map[string]*plan.Trial{"spend": {Entries: 3, Tried: 3, Failed: 1}}, map[string]error{"spend": nil})
	if notes := notesOf(p); !slices.Contains(notes, "sink pg: rows of entries of state spend that are set aside stay") {
		t.Errorf("notes %q", notes)
	}
	if p.Refuses() {
		t.Errorf("refused for %q", p.Refusals())
	}
}

// An incomplete state stays so under another name.
func TestPartialGoesOnUnderAnotherName(t *testing.T) {
	p := change{
		head: func(m *epoch.Manifest) {
			m.Partial = map[string]epoch.Partial{"refunds": {Why: "began at 7", Until: 9}}
		},
		after: renamed("main.(*Spend).Sub", "main.Order.SellerID", "orders"),
	}.plan(t)
	if got := p.Partial(); len(got) != 1 || got["backs"] != (epoch.Partial{Why: "began at 7", Until: 9}) {
		t.Errorf("partial are %v", got)
	}
}

// hits has files read by a source of another name.
func hits(pattern string) func(b *build) {
	return func(b *build) {
		delete(b.Sources, "clicks")
		b.Sources["hits"] = part("file.json", nil, "target", pattern)
		inputs(b.Operators, "visits", "hits")
	}
}

const readTwice = "source clicks: refused: clicks: source hits would read from its start what this one has read for state pages, state visits: it would count twice"

func keyed[K comparable](b *build) {
	keep(b, "spend", "spend", "value", meanings{}, carry.Spec[K, spend]{})
}

func window(b *build, size string) {
	b.Operators["spend"] = part("fold", []string{"orders"}, "window", size)
}

func same(*build) {}

// away is a sink that is gone since a position.
func away(sink string, confirmed epoch.Position) func(m *epoch.Manifest) {
	return func(m *epoch.Manifest) {
		m.Sinks[sink] = epoch.SinkState{Record: "r", Confirmed: confirmed, Dropped: "consented"}
	}
}

func untouched(m *epoch.Manifest) {
	m.Position, m.State = 0, nil
	for name, s := range m.Sinks {
		s.Confirmed = 0
		m.Sinks[name] = s
	}
}

func TestCompare(t *testing.T) {
	for _, c := range slices.Concat(changes, sortedChanges, timeChanges, windowChanges) {
		t.Run(c.name, func(t *testing.T) {
			p := c.plan(t)
			if got := said(p); !slices.Equal(got, c.want) {
				t.Errorf("the plan says\n\t%s\nand should\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			notes := notesOf(p)
			for _, want := range c.notes {
				if !slices.Contains(notes, want) {
					t.Errorf("no note %q among\n\t%s", want, strings.Join(notes, "\n\t"))
				}
			}
			refusals := p.Refusals()
			if p.Refuses() != (len(c.refusals) > 0) || len(refusals) != len(c.refusals) {
				t.Fatalf("refused for %q, expected %q", refusals, c.refusals)
			}
			for _, want := range c.refusals {
				if !slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(r, want) }) {
					t.Errorf("no refusal %q among %q", want, refusals)
				}
			}
			if worst := p.Worst(); p.Refuses() != (worst >= plan.Consent) {
				t.Errorf("the worst verdict is %v, and refusals are %q", worst, refusals)
			}
		})
	}
}

// said are the lines of a plan that say something, as a change wants them.
func said(p *plan.Plan) (lines []string) {
	for _, l := range p.Lines {
		if l.Verdict != plan.Same || len(l.Causes) > 0 {
			lines = append(lines, string(l.Part)+" "+l.Name+": "+l.Verdict.String()+": "+strings.Join(l.Causes, " | "))
		}
	}
	slices.Sort(lines)
	return lines
}

func notesOf(p *plan.Plan) (notes []string) {
	for _, l := range p.Lines {
		for _, n := range l.Notes {
			notes = append(notes, string(l.Part)+" "+l.Name+": "+n)
		}
	}
	return notes
}

// An identical job has a line for each part, and no notes.
func TestEveryPartHasALine(t *testing.T) {
	p := change{}.plan(t)
	var got []string
	for _, l := range p.Lines {
		got = append(got, string(l.Part)+" "+l.Name)
	}
	want := []string{
		"source clicks", "source orders", "operator refunds", "operator spend", "operator visits", "key refunds", "key spend", "key visits",
		"state pages", "state refunds", "state spend", "state visits", "sink log", "sink pg", "sink topic",
	}
	if !slices.Equal(got, want) || len(notesOf(p)) != 0 {
		t.Errorf("lines %q, notes %q", got, notesOf(p))
	}
}

func TestExitCodes(t *testing.T) {
	for v, want := range map[plan.Verdict]int{plan.Same: 0, plan.Resolves: 0, plan.Migrates: 20, plan.Partial: 21, plan.Consent: 22, plan.Replay: 23, plan.Refused: 24} {
		p := &plan.Plan{Lines: []*plan.Line{{}, {Verdict: v}, {Verdict: plan.Same}}}
		if p.ExitCode() != want {
			t.Errorf("%v: exit code %d, expected %d", v, p.ExitCode(), want)
		}
		text, err := v.MarshalText()
		var back plan.Verdict
		if err != nil || back.UnmarshalText(text) != nil || back != v {
			t.Errorf("%v is written as %q and read as %v", v, text, back)
		}
	}
}

// The manifest keeps which states are incomplete: new ones, those that were, and
// all of an operator that lacks a part of its input.
func TestPartial(t *testing.T) {
	p := change{
		head: func(m *epoch.Manifest) {
			m.Partial = map[string]epoch.Partial{"spend": {Why: "began at 7", Until: 9}, "gone": {Why: "x"}}
		},
		after: func(b *build) {
			inputs(b.Operators, "visits", "clicks", "orders")
			b.operate("totals", "fold", "main.add", "main.one", "spend")
			keep(b, "totals", "totals", "value", meanings{}, carry.Spec[string, spend]{})
		},
	}.plan(t)
	got, err := json.Marshal(p.Partial(), json.Deterministic(true))
	const missed = `{"why":"it has not seen what came of orders before epoch 42"}`
	want := `{"pages":` + missed + `,"spend":{"why":"began at 7","until":9},"totals":{"why":"it begins empty: it has not seen what was read of orders before epoch 42"},"visits":` + missed + `}`
	if err != nil || string(got) != want {
		t.Errorf("partial are %s (%v), expected %s", got, err, want)
	}
}

// What an earlier version had, and this one lacks, may have been consented to.
func TestDropped(t *testing.T) {
	first, second, now := firstBuild(), firstBuild(), firstBuild()
	spendAs(second, meanings{}, carry.Spec[string, spendVIP]{})
	now.without("refunds", "refunds")
	rows[string, rowShort](now, "pg", true)
	got, err := plan.Dropped([]epoch.Version{first.Version, second.Version}, now.Version)
	slices.Sort(got)
	if want := []string{"pg.Note", "refunds", "spend.VIP"}; err != nil || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%q, %v; expected %q", got, err, want)
	}
}

// The helper that tries entries adds what fails to a line.
func TestAdd(t *testing.T) {
	l := &plan.Line{Part: plan.StatePart, Name: "spend"}
	l.Add(plan.Resolves, "spend.VIP: added (boolean)", "")
	l.Add(plan.Refused, "spend: 3 entries can't be carried over", "mend the migration")
	l.Add(plan.Partial, "less", "nothing of this helps")
	if l.Verdict != plan.Refused || l.Do != "mend the migration" || len(l.Causes) != 3 || len(l.Refusals) != 1 {
		t.Errorf("%+v", l)
	}
}
