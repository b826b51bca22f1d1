package registry_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/codec/registry/registrytest"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leaps is a clock that goes on by each pause at once.
type leaps struct{ now atomic.Int64 }

func (l *leaps) Now() time.Time { return time.Unix(0, l.now.Load()) }

func (l *leaps) NewTimer(d time.Duration) env.Timer {
	l.now.Add(int64(d))
	c := make(chan time.Time, 1)
	c <- l.Now()
	return leapt(c)
}

type leapt chan time.Time

func (t leapt) C() <-chan time.Time { return t }
func (t leapt) Reset(time.Duration) {}
func (t leapt) Stop()               {}

// open opens a registry whose pauses take no time.
func open(t testing.TB, opts ...registry.Option) *registry.Registry {
	t.Helper()
	r, err := registry.New(append([]registry.Option{registry.Environment(&env.Env{Clock: &leaps{}})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// target is a registry that tests run against.
type target struct {
	name, url string
	client    *sr.Client
	prefix    string // of this run's subjects
}

// eachRegistry runs a test against the registry in this process, and against a
// real one where the environment names it.
func eachRegistry(t *testing.T, test func(t *testing.T, to target)) {
	run := func(name, url string) {
		t.Run(name, func(t *testing.T) {
			random := make([]byte, 6)
			rand.Read(random)
			h := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(h.CloseIdleConnections)
			client, err := sr.NewClient(sr.URLs(url), sr.HTTPClient(h))
			if err != nil {
				t.Fatal(err)
			}
			test(t, target{name, url, client, "sluice-test-" + hex.EncodeToString(random) + "-"})
		})
	}
	run("in this process", registrytest.Start(t).URL)
	real := os.Getenv(registry.Variable)
	if real == "" {
		t.Run("real", func(t *testing.T) {
			t.Skip("no real schema registry is tried: " + registry.Variable + " names none")
		})
		return
	}
	run("real", real)
}

func (to target) setMode(t *testing.T, subject, mode string) {
	t.Helper()
	var level sr.CompatibilityLevel
	if err := level.UnmarshalText([]byte(mode)); err != nil {
		t.Fatal(err)
	}
	for _, r := range to.client.SetCompatibility(context.Background(), sr.SetCompatibility{Level: level}, subject) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func avroSchema(text string) *codec.Schema {
	return &codec.Schema{Format: codec.FormatAvro, Text: text}
}
func protoSchema(text string) *codec.Schema {
	return &codec.Schema{Format: codec.FormatProtobuf, Text: text}
}

func rec(fields string) *codec.Schema {
	return avroSchema(`{"type":"record","name":"r","fields":[` + fields + `]}`)
}

// verdict is what a mode says, in order: BACKWARD, FORWARD. FULL is both.
type verdict struct {
	name      string
	was, now  *codec.Schema
	back, fwd bool
	differs   bool // registries differ in this
}

const id = `{"name":"id","type":"long"}`

// verdicts are worked out by hand. Backward: what reads by the new schema can read
// what was written by the old one. Forward: the reverse.
var verdicts = []verdict{
	{"a field added with a default", rec(id), rec(id + `,{"name":"x","type":"string","default":""}`), true, true, false},
	{"a field added without", rec(id), rec(id + `,{"name":"x","type":"string"}`), false, true, false},
	{"a field removed that had a default", rec(id + `,{"name":"x","type":"string","default":""}`), rec(id), true, true, false},
	{"a field removed that had none", rec(id + `,{"name":"x","type":"string"}`), rec(id), true, false, false},
	{"a type promoted", rec(`{"name":"x","type":"int"}`), rec(`{"name":"x","type":"long"}`), true, false, false},
	{"a type narrowed", rec(`{"name":"x","type":"long"}`), rec(`{"name":"x","type":"int"}`), false, true, false},
	{"a type changed", rec(`{"name":"x","type":"long"}`), rec(`{"name":"x","type":"string"}`), false, false, false},
	{"a field renamed with an alias", rec(`{"name":"x","type":"long"}`), rec(`{"name":"y","type":"long","aliases":["x"]}`), true, false, false},
	{"a field renamed without", rec(`{"name":"x","type":"long"}`), rec(`{"name":"y","type":"long"}`), false, false, false},
	{"made nullable", rec(`{"name":"x","type":"string"}`), rec(`{"name":"x","type":["null","string"]}`), true, false, false},
	{"made required", rec(`{"name":"x","type":["null","string"]}`), rec(`{"name":"x","type":"string"}`), false, true, false},
	{"a symbol added", rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A"]}}`), rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A","B"]}}`), true, false, false},
	{"a symbol removed", rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A","B"]}}`), rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A"]}}`), false, true, false},
	{"deep in arrays and maps", rec(`{"name":"x","type":{"type":"array","items":{"type":"map","values":"int"}}}`), rec(`{"name":"x","type":{"type":"array","items":{"type":"map","values":"double"}}}`), true, false, false},
	{"the record renamed with an alias", rec(id), avroSchema(`{"type":"record","name":"q","aliases":["r"],"fields":[` + id + `]}`), true, false, false},
	{"the record renamed without", rec(id), avroSchema(`{"type":"record","name":"q","fields":[` + id + `]}`), false, false, false},
	{"the record moved to another namespace", rec(id), avroSchema(`{"type":"record","name":"elsewhere.r","fields":[` + id + `]}`), true, true, false},
	{"a symbol added, and a default for others", rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A"],"default":"A"}}`), rec(`{"name":"x","type":{"type":"enum","name":"e","symbols":["A","B"],"default":"A"}}`), true, true, false},
	{"a branch added", rec(`{"name":"x","type":["int","string"]}`), rec(`{"name":"x","type":["int","string","boolean"]}`), true, false, false},
	{"a branch promoted", rec(`{"name":"x","type":["int","string"]}`), rec(`{"name":"x","type":["string","double"]}`), true, false, false},
	{"a fixed of another size", rec(`{"name":"x","type":{"type":"fixed","name":"f","size":2}}`), rec(`{"name":"x","type":{"type":"fixed","name":"f","size":3}}`), false, false, false},
	{"text and bytes", rec(`{"name":"x","type":"string"}`), rec(`{"name":"x","type":"bytes"}`), true, true, false},
	{"a record that holds itself", rec(`{"name":"next","type":["null","r"]}`), rec(`{"name":"next","type":["null","r"]},{"name":"x","type":"long"}`), false, true, false},

	{"Protobuf: a field added and one removed", protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; string old = 2; }"), protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; string x = 3; }"), true, true, true},
	{"Protobuf: a number's type changed", protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; }"), protoSchema("syntax = \"proto3\";\nmessage A { string id = 1; }"), false, false, false},
	{"Protobuf: a wider integer", protoSchema("syntax = \"proto3\";\nmessage A { int32 id = 1; }"), protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; }"), true, true, true},
	{"Protobuf: zigzag", protoSchema("syntax = \"proto3\";\nmessage A { int32 id = 1; }"), protoSchema("syntax = \"proto3\";\nmessage A { sint32 id = 1; }"), false, false, false},
	{"Protobuf: a name changed", protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; }"), protoSchema("syntax = \"proto3\";\nmessage A { int64 key = 1; }"), true, true, true},
	{"Protobuf: a message removed", protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; }\nmessage B { }"), protoSchema("syntax = \"proto3\";\nmessage A { int64 id = 1; }"), false, true, true},
}

// TestModes registers a second version in every mode.
func TestModes(t *testing.T) {
	eachRegistry(t, func(t *testing.T, to target) {
		r := open(t, registry.URLs(to.url))
		for i, v := range verdicts {
			for _, mode := range registrytest.Modes() {
				fits := map[string]bool{
					"NONE": true, "BACKWARD": v.back, "FORWARD": v.fwd, "FULL": v.back && v.fwd,
				}[strings.TrimSuffix(mode, "_TRANSITIVE")]
				subject := fmt.Sprintf("%s%d-%s", to.prefix, i, mode)
				t.Run(v.name+"/"+mode, func(t *testing.T) {
					if v.differs && to.name == "real" {
						t.Skip("not tried on a real registry: Avro's rules are the specification's, but what Protobuf's are is each registry's own affair here")
					}
					if _, err := r.Enroll(t.Context(), subject, v.was, false); err != nil {
						t.Fatal(err)
					}
					to.setMode(t, subject, mode)
					_, err := r.Enroll(t.Context(), subject, v.now, false)
					checkVerdict(t, err, fits, subject, mode, 1)
					versions, verr := to.client.SubjectVersions(t.Context(), subject)
					if want := 1 + count(fits); verr != nil || len(versions) != want {
						t.Errorf("versions %v, %v; expected %d", versions, verr, want)
					}
				})
			}
		}
	})
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func checkVerdict(t *testing.T, err error, fits bool, subject, mode string, version int) {
	t.Helper()
	if fits {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	clash, ok := errors.AsType[*registry.IncompatibleError](err)
	if !ok {
		t.Fatalf("%v, expected a clash", err)
	}
	if clash.Subject != subject || clash.Mode != mode || clash.Version != version || len(clash.Messages) == 0 || clash.Messages[0] == "" {
		t.Fatalf("%+v; expected version %d", clash, version)
	}
	for _, part := range []string{"subject " + subject, "version " + fmt.Sprint(version), "mode " + mode, clash.Messages[0]} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoesn't tell %s", err, part)
		}
	}
	if !errors.Is(err, connector.ErrUnavailable) {
		t.Error("a clash is no record's fault")
	}
}

// TestTransitive has a third version that fits the second and clashes with the
// first: only the transitive modes see it.
func TestTransitive(t *testing.T) {
	const text, number = `,{"name":"x","type":"string","default":""}`, `,{"name":"x","type":"long"}`
	eachRegistry(t, func(t *testing.T, to target) {
		r := open(t, registry.URLs(to.url))
		for mode, v := range map[string]struct {
			versions []*codec.Schema
			fits     bool
		}{
			// v3 has a default for what v2 lacks, but v1's x is no string.
			"BACKWARD":            {[]*codec.Schema{rec(id + number), rec(id), rec(id + text)}, true},
			"BACKWARD_TRANSITIVE": {[]*codec.Schema{rec(id + number), rec(id), rec(id + text)}, false},
			// v2 has a default for what v3 lacks, v1 has none.
			"FORWARD":            {[]*codec.Schema{rec(id + number), rec(id + `,{"name":"x","type":"long","default":0}`), rec(id)}, true},
			"FORWARD_TRANSITIVE": {[]*codec.Schema{rec(id + number), rec(id + `,{"name":"x","type":"long","default":0}`), rec(id)}, false},
			"FULL":               {[]*codec.Schema{rec(id + `,{"name":"x","type":"long","default":0}`), rec(id), rec(id + text)}, true},
			"FULL_TRANSITIVE":    {[]*codec.Schema{rec(id + `,{"name":"x","type":"long","default":0}`), rec(id), rec(id + text)}, false},
		} {
			t.Run(mode, func(t *testing.T) {
				subject := to.prefix + "transitive-" + mode
				if _, err := r.Enroll(t.Context(), subject, v.versions[0], false); err != nil {
					t.Fatal(err)
				}
				to.setMode(t, subject, "NONE")
				if _, err := r.Enroll(t.Context(), subject, v.versions[1], false); err != nil {
					t.Fatal(err)
				}
				to.setMode(t, subject, mode)
				_, err := r.Enroll(t.Context(), subject, v.versions[2], false)
				checkVerdict(t, err, v.fits, subject, mode, 1)
			})
		}
	})
}

// TestEnroll: the same schema has one id, whichever subject it stands under and
// whoever asks, also if it isn't the newest; the registry's own mode counts where
// a subject has none.
func TestEnroll(t *testing.T) {
	eachRegistry(t, func(t *testing.T, to target) {
		r := open(t, registry.URLs(to.url))
		a, b := to.prefix+"a", to.prefix+"b"
		one, two := rec(id), rec(id+`,{"name":"x","type":"string","default":""}`)
		enroll := func(subject string, s *codec.Schema, lookUp bool) uint32 {
			t.Helper()
			got, err := r.Enroll(t.Context(), subject, s, lookUp)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		_, err := r.Enroll(t.Context(), a, one, true)
		if missing, ok := errors.AsType[*registry.MissingError](err); !ok || missing.Newest != 0 || missing.Subject != a || !errors.Is(err, connector.ErrUnavailable) {
			t.Errorf("no such subject: %v", err)
		}
		first := enroll(a, one, false)
		second := enroll(a, two, false)
		if first == second || enroll(a, one, false) != first || enroll(a, one, true) != first || enroll(b, two, false) != second {
			t.Errorf("ids %d and %d, and others", first, second)
		}
		_, err = r.Enroll(t.Context(), b, one, true)
		if missing, ok := errors.AsType[*registry.MissingError](err); !ok || missing.Newest != 1 {
			t.Errorf("another schema there: %v", err)
		}
		got, err := r.Schema(t.Context(), second)
		if err != nil || got.Format != codec.FormatAvro || !strings.Contains(got.Text, `"x"`) {
			t.Errorf("%+v, %v", got, err)
		}
		if own := to.client.Compatibility(t.Context())[0]; own.Level != sr.CompatBackward {
			t.Logf("not tried is what a registry's own mode does to a subject without one: here it is %s", own.Level)
		} else if _, err = r.Enroll(t.Context(), b, rec(id+`,{"name":"y","type":"string"}`), false); err == nil {
			t.Error("the registry's own mode, BACKWARD, was passed over")
		}
		if _, err := r.Enroll(t.Context(), to.prefix+"bad", avroSchema(`{"type":"recrod"}`), false); !errors.Is(err, connector.ErrUnavailable) {
			t.Errorf("no schema: %v", err)
		}
		if _, err := r.Schema(t.Context(), 1<<30); !errors.Is(err, codec.ErrUnknownID) || errors.Is(err, connector.ErrUnavailable) {
			t.Errorf("an unknown id: %v", err)
		}
		if _, err := r.Schema(t.Context(), 1<<31); !errors.Is(err, codec.ErrUnknownID) {
			t.Errorf("an id that can't be: %v", err)
		}
	})
}

// TestReferences registers what a schema imports first, and fetches it back.
func TestReferences(t *testing.T) {
	eachRegistry(t, func(t *testing.T, to target) {
		r := open(t, registry.URLs(to.url))
		cents := protoSchema("syntax = \"proto3\";\npackage common;\nmessage Cents { int64 n = 1; }\n")
		centsName, moneyName := to.prefix+"/cents.proto", to.prefix+"/money.proto"
		money := protoSchema("syntax = \"proto3\";\npackage common;\nimport \"" + centsName + "\";\nmessage Money { .common.Cents cents = 1; }\n")
		money.References = []codec.Reference{{Name: centsName, Schema: cents}}
		order := protoSchema("syntax = \"proto3\";\npackage shop;\nimport \"" + centsName + "\";\nimport \"" + moneyName + "\";\nmessage Order { .common.Money total = 1; .common.Cents tip = 2; }\n")
		order.References = []codec.Reference{{Name: centsName, Schema: cents}, {Name: moneyName, Schema: money}}
		got, err := r.Enroll(t.Context(), to.prefix+"order", order, false)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := r.Enroll(t.Context(), to.prefix+"order", order, true); err != nil || again != got {
			t.Errorf("looked up: %d, %v; expected %d", again, err, got)
		}
		s, err := r.Schema(t.Context(), got)
		if err != nil || len(s.References) != 2 || s.References[1].Name != moneyName || len(s.References[1].Schema.References) != 1 ||
			!strings.Contains(s.References[1].Schema.References[0].Schema.Text, "message Cents") {
			t.Errorf("%+v, %v", s, err)
		}
		named := avroSchema(`{"type":"record","name":"shop.Money","fields":[{"name":"Cents","type":"long"}]}`)
		with := avroSchema(`{"type":"record","name":"shop.Order","fields":[{"name":"Total","type":"shop.Money"}]}`)
		// The subject is the type's name, which others use too on a real registry.
		with.References = []codec.Reference{{Name: "shop.Money", Schema: named}}
		if to.name == "real" {
			return
		}
		if _, err := r.Enroll(t.Context(), to.prefix+"avro", with, false); err != nil {
			t.Error(err)
		}
	})
}

// TestCodecs writes and reads records through a registry, as a job does.
func TestCodecs(t *testing.T) {
	type OrderV1 struct {
		ID   int32
		Name string
	}
	type OrderV2 struct {
		ID    int64
		Title string `avro:",alias=Name"`
		VIP   bool
	}
	eachRegistry(t, func(t *testing.T, to target) {
		topic := codec.Use{Topic: to.prefix + "orders"}
		writer := open(t, registry.URLs(to.url))
		v1 := codec.For(codec.Avro[OrderV1](codec.Record("shop.Order"), codec.Registered(writer)), topic)
		if err := v1.(codec.Preparer).Prepare(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		bytes, err := v1.NewEncoder()(nil, &OrderV1{7, "ann"})
		if err != nil || bytes[0] != 0 || string(bytes[5:]) != "\x0e\x06ann" {
			t.Fatalf("%q, %v", bytes, err)
		}
		to.setMode(t, topic.Topic+"-value", "BACKWARD")
		reader := open(t, registry.URLs(to.url))
		v2 := codec.Avro[OrderV2](codec.Record("shop.Order"), codec.Registered(reader))
		var got OrderV2
		if err := v2.NewDecoder()(bytes, &got); err != nil || got != (OrderV2{7, "ann", false}) {
			t.Errorf("%+v, %v", got, err)
		}
		if err := v2.(codec.Preparer).Prepare(t.Context(), topic); err != nil {
			t.Errorf("every field has a default, so that it is compatible: %v", err)
		}
		type OrderV3 struct{ ID string }
		err = codec.Avro[OrderV3](codec.Record("shop.Order"), codec.Registered(reader)).(codec.Preparer).Prepare(t.Context(), topic)
		clash, ok := errors.AsType[*registry.IncompatibleError](err)
		if !ok || clash.Version != 2 || clash.Mode != "BACKWARD" || clash.Subject != topic.Topic+"-value" || !errors.Is(err, connector.ErrUnavailable) {
			t.Errorf("a number that became a text: %v", err)
		}
		lazy := codec.For(codec.Avro[OrderV3](codec.Record("shop.Order"), codec.Registered(reader)), topic)
		if _, lazyErr := lazy.NewEncoder()(nil, &OrderV3{}); lazyErr == nil || lazyErr.Error() != err.Error() {
			t.Errorf("at the first record: %v\nprepared: %v", lazyErr, err)
		}
	})
}

// failing answers every request with a status.
func failing(t *testing.T, status int) (*registrytest.Server, *registry.Registry) {
	server := registrytest.Start(t)
	server.Fail(func(*http.Request) int { return status })
	return server, open(t, registry.URLs(server.URL))
}

// TestPatience: what can pass is waited for, for some 30 seconds: pauses of 0.1,
// 0.2, 0.4, 0.8, 1.6 and 3.2 seconds, and then of 5. What can't pass is not.
func TestPatience(t *testing.T) {
	for status, attempts := range map[int]int{500: 11, 502: 11, 503: 11, 429: 11, 408: 11, 401: 1, 403: 1, 404: 1, 405: 1, 422: 1} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			server, r := failing(t, status)
			_, err := r.Schema(t.Context(), 1)
			fault, ok := errors.AsType[*registry.Error](err)
			if !ok || fault.Status != status || fault.Attempts != attempts || !errors.Is(err, connector.ErrUnavailable) || errors.Is(err, codec.ErrUnknownID) {
				t.Fatalf("%#v: %v", err, err)
			}
			if n := len(server.Requests()); n != attempts {
				t.Errorf("asked %d times, expected %d", n, attempts)
			}
			if attempts > 1 && (fault.Waited < 25*time.Second || fault.Waited > 30*time.Second) {
				t.Errorf("waited %v", fault.Waited)
			}
			for _, part := range []string{server.URL, "the schema of id 1", fmt.Sprint(status), "as the test wants it"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\ndoesn't tell %s", err, part)
				}
			}
			_, err = r.Enroll(t.Context(), "s", rec(id), false)
			if _, ok := errors.AsType[*registry.Error](err); !ok {
				t.Errorf("enrolled: %v", err)
			}
		})
	}
}

// TestComesBack: a registry that answers again within the time is as one that
// never was away.
func TestComesBack(t *testing.T) {
	server := registrytest.Start(t)
	var calls atomic.Int64
	server.Fail(func(*http.Request) int {
		if calls.Add(1)%3 != 0 {
			return 503
		}
		return 0
	})
	r := open(t, registry.URLs(server.URL))
	got, err := r.Enroll(t.Context(), "s", rec(id), false)
	if err != nil || got != 1 {
		t.Fatal(got, err)
	}
	if s, err := r.Schema(t.Context(), 1); err != nil || s.Text != rec(id).Text {
		t.Fatal(s, err)
	}
}

// TestOtherRegistries: some don't tell what counts for a subject without a mode of
// its own; and between a comparison and a registration another may come.
func TestOtherRegistries(t *testing.T) {
	server := registrytest.Start(t)
	r := open(t, registry.URLs(server.URL))
	if _, err := r.Enroll(t.Context(), "s", rec(id), false); err != nil {
		t.Fatal(err)
	}
	server.Fail(func(q *http.Request) int {
		if q.URL.Path == "/config/s" {
			return 40408
		}
		return 0
	})
	_, err := r.Enroll(t.Context(), "s", rec(`{"name":"id","type":"string"}`), false)
	checkVerdict(t, err, false, "s", "BACKWARD", 1)
	server.Fail(func(q *http.Request) int {
		if q.Method == "POST" && q.URL.Path == "/subjects/s/versions" {
			return 409
		}
		return 0
	})
	_, err = r.Enroll(t.Context(), "s", rec(""), false)
	clash, ok := errors.AsType[*registry.IncompatibleError](err)
	if !ok || clash.Version != 0 || clash.Mode != "BACKWARD" || !strings.Contains(err.Error(), "with what is there in mode BACKWARD, found one that isn't: as the test wants it") {
		t.Errorf("%v", err)
	}
}

// TestPatienceInAll: what takes several requests waits no longer than what takes
// one. Each here fails twice, which takes 0.3 seconds.
func TestPatienceInAll(t *testing.T) {
	server := registrytest.Start(t)
	if _, err := open(t, registry.URLs(server.URL)).Enroll(t.Context(), "s", rec(id), false); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	server.Fail(func(*http.Request) int {
		if calls.Add(1)%3 != 0 {
			return 503
		}
		return 0
	})
	two := rec(id + `,{"name":"x","type":"string","default":""}`)
	// Looked up, versions, mode, compared, registered.
	_, err := open(t, registry.URLs(server.URL), registry.Patience(1400*time.Millisecond)).Enroll(t.Context(), "s", two, false)
	if fault, ok := errors.AsType[*registry.Error](err); !ok || !strings.Contains(fault.What, "registering") {
		t.Errorf("%v", err)
	}
	calls.Store(0)
	if _, err := open(t, registry.URLs(server.URL), registry.Patience(1500*time.Millisecond)).Enroll(t.Context(), "s", two, false); err != nil {
		t.Error(err)
	}
}

// TestDown: nobody listens, or nobody answers in time.
func TestDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := open(t, registry.URLs("http://user:pa55word@"+address))
	_, err = r.Schema(t.Context(), 1)
	fault, ok := errors.AsType[*registry.Error](err)
	if !ok || fault.Attempts != 11 || fault.Status != 0 || !errors.Is(err, connector.ErrUnavailable) {
		t.Errorf("nobody listens: %v", err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, fault, fault), "pa55word") || !strings.Contains(err.Error(), address) {
		t.Errorf("the error: %v", err)
	}

	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	r = open(t, registry.URLs(slow.URL), registry.Timeout(20*time.Millisecond), registry.Patience(200*time.Millisecond))
	_, err = r.Schema(t.Context(), 1)
	if fault, ok := errors.AsType[*registry.Error](err); !ok || fault.Attempts != 2 {
		t.Errorf("nobody answers: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = open(t, registry.URLs(slow.URL))
	if _, err = r.Schema(ctx, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, connector.ErrUnavailable) {
		t.Errorf("called off: %v", err)
	}
	r = open(t, registry.URLs("http://"+address, registrytest.Start(t).URL))
	if _, err := r.Schema(t.Context(), 1); !errors.Is(err, codec.ErrUnknownID) {
		t.Errorf("the second URL: %v", err)
	}
}

// TestNoRegistry: what answers isn't one, or answers without end.
func TestNoRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		says   string
	}{
		"a page": {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
			"the schema of id 1: an answer that is no JSON, which no registry gives: invalid character '<' looking for beginning of value; is a schema registry there? Mend the URL, or the proxy in between"},
		"a missing page": {func(w http.ResponseWriter) { w.WriteHeader(404); fmt.Fprint(w, "<html>\n\nlost") },
			"the schema of id 1: HTTP status 404: a web page, which no registry answers with; is a schema registry there? Mend the URL, or the proxy in between"},
		"a page of a proxy": {func(w http.ResponseWriter) { w.WriteHeader(502); fmt.Fprint(w, "\n<!DOCTYPE html><html>Bad Gateway") },
			"the schema of id 1: HTTP status 502: a web page, which no registry answers with; is a schema registry there? Mend the URL, or the proxy in between"},
		"an error of its own": {func(w http.ResponseWriter) {
			w.WriteHeader(500)
			fmt.Fprint(w, `{"error_code":50001,"message":"Error in the\nbackend data store"}`)
		},
			"the schema of id 1: HTTP status 500: Error in the backend data store; look into the registry's log, and start again once it answers"},
		"a conflict": {func(w http.ResponseWriter) {
			w.WriteHeader(409)
			fmt.Fprint(w, `{"error_code":409,"message":"in mode READONLY"}`)
		},
			"the schema of id 1: HTTP status 409: in mode READONLY; the subject's schemas or its mode stand in the way: look at them in the registry, or use another subject"},
		"a refusal": {func(w http.ResponseWriter) { w.WriteHeader(422) },
			"the schema of id 1: HTTP status 422: no response; look into the registry's log for why it refuses"},
		"too much": {func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"schema":"`)
			for range 17 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		}, "an answer of more than 16777216 bytes"},
		"a long complaint": {func(w http.ResponseWriter) { w.WriteHeader(400); fmt.Fprint(w, strings.Repeat("x\n", 100_000)) }, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			defer h.Close()
			_, err := open(t, registry.URLs(h.URL), registry.Patience(0)).Schema(t.Context(), 1)
			if !errors.Is(err, connector.ErrUnavailable) || errors.Is(err, codec.ErrUnknownID) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.700v; expected %s", err, c.says)
			}
		})
	}
}

// TestUnknownIDs: an id that isn't known is asked for again only after some
// seconds, however many records have it.
func TestUnknownIDs(t *testing.T) {
	server, clock := registrytest.Start(t), &leaps{}
	r := open(t, registry.URLs(server.URL), registry.Environment(&env.Env{Clock: clock}))
	ask := func() error { _, err := r.Schema(t.Context(), 1); return err }
	for range 5 {
		if err := ask(); !errors.Is(err, codec.ErrUnknownID) {
			t.Fatal(err)
		}
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, err := r.Enroll(t.Context(), "s", rec(id), false); err != nil {
		t.Fatal(err)
	}
	clock.now.Add(int64(10 * time.Second))
	if err := ask(); err != nil {
		t.Errorf("it is known by now: %v", err)
	}
}

// TestSecrets: who asks is told to the registry, and to nobody else.
func TestSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		opts   func(url string) []registry.Option
		header string
	}{
		"basic": {func(u string) []registry.Option {
			return []registry.Option{registry.URLs(u), registry.BasicAuth("user", "s3cret")}
		}, "Basic dXNlcjpzM2NyZXQ="},
		"in URL": {func(u string) []registry.Option {
			return []registry.Option{registry.URLs(strings.Replace(u, "//", "//user:s3cret@", 1))}
		}, "Basic dXNlcjpzM2NyZXQ="},
		"bearer": {func(u string) []registry.Option {
			return []registry.Option{registry.URLs(u), registry.Bearer("s3cret")}
		}, "Bearer s3cret"},
	} {
		t.Run(name, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if got := q.Header.Get("Authorization"); got != c.header {
					t.Errorf("%q, expected %q", got, c.header)
				}
				w.WriteHeader(401)
				fmt.Fprintf(w, `{"error_code":40101,"message":"no such user with %s or s3cret"}`, q.Header.Get("Authorization"))
			}))
			defer h.Close()
			_, err := open(t, c.opts(h.URL)...).Schema(t.Context(), 1)
			fault, ok := errors.AsType[*registry.Error](err)
			if !ok || fault.Status != 401 || !strings.Contains(err.Error(), "registry.Bearer") {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%v %+v %#v", err, fault, fault)
			for e := error(fault.Cause); e != nil; e = errors.Unwrap(e) {
				text += fmt.Sprintf("%v %#v", e, e)
			}
			if strings.Contains(text, "s3cret") || strings.Contains(text, "dXNlcjpzM2NyZXQ") {
				t.Errorf("%s", text)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Setenv(registry.Variable, "")
	for says, opts := range map[string][]registry.Option{
		"no URL: registry.URLs or the environment variable SLUICE_REGISTRY": nil,
		"URL 2 of 2 is none":   {registry.URLs("http://a", "ftp://b")},
		"URL 1 of 1 is none":   {registry.URLs("http://a?token=s3cret")},
		"URL 1 of 1 is none: ": {registry.URLs("http://user:s3cret@:%zz")},
		"found both":           {registry.URLs("a"), registry.BasicAuth("u", "p"), registry.Bearer("t")},
		"a timeout above 0":    {registry.URLs("a"), registry.Timeout(0)},
		"a patience of 0":      {registry.URLs("a"), registry.Patience(-1)},
	} {
		if _, err := registry.New(opts...); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v; expected %s", err, says)
		}
	}
	server := registrytest.Start(t)
	t.Setenv(registry.Variable, "http://127.0.0.1:1/,"+strings.TrimPrefix(server.URL, "http://"))
	if _, err := open(t).Schema(t.Context(), 1); !errors.Is(err, codec.ErrUnknownID) {
		t.Errorf("by the environment: %v", err)
	}
	if !slices.Equal(server.Requests(), []string{"GET /schemas/ids/1"}) {
		t.Errorf("requests %q", server.Requests())
	}
}

// TestTLS: a certificate that isn't trusted is no reason to wait; one that is
// trusted is none to fail.
func TestTLS(t *testing.T) {
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"schema":"\"long\""}`) }))
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of whoever doesn't trust it
	h.StartTLS()
	defer h.Close()
	_, err := open(t, registry.URLs(h.URL)).Schema(t.Context(), 1)
	if fault, ok := errors.AsType[*registry.Error](err); !ok || fault.Attempts != 1 {
		t.Errorf("%v", err)
	}
	trusting := h.Client().Transport.(*http.Transport).TLSClientConfig
	if s, err := open(t, registry.URLs(h.URL), registry.TLS(trusting)).Schema(t.Context(), 1); err != nil || s.Text != `"long"` {
		t.Errorf("%v, %v", s, err)
	}
	h.Client().CloseIdleConnections()
}
