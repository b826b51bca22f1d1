package epoch

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write golden files anew")

// fullManifest has a value in every field.
func fullManifest() Manifest {
	n := Generation(2)
	return Manifest{
		Format: 1, JobID: "0123456789abcdef", Branch: "main", Task: "0.0", Epoch: 1841, Kind: Data, Parent: strings.Repeat("9c", 32),
		Owner: "fedcba9876543210", Attempt: "fedcba9876543210-12", Position: 1830, Version: "v1",
		Build:  Build{Revision: "4f2a+dirty", Executable: strings.Repeat("e0", 32), Version: "v1"},
		Writer: Writer{Host: "host", Machine: "m", Boot: "b", PIDNamespace: "pid:[1]", PID: 17, Started: "123456"},
		Time:   1_764_435_600_000_000, By: "somebody", Live: &n, Covers: map[string]Position{"0.0": 1829}, Now: 1_764_435_599_000_000,
		Runs:       []Run{{"orders", "b.json", 100}, {"orders", "a.json", 90}},
		Sources:    map[string]SourceState{"orders": {map[string]Offset{"b.json": {Next: 100, LeaderEpoch: 3, Identity: "i"}, "a.json": {Next: 90}}}},
		Watermarks: map[string]EventTime{"orders": {-1, map[string]map[string]PartitionTime{"orders": {"a.json": {0, 1}, "b.json": {NoTime, NoTime}}}}, "none": {Watermark: NoTime}},
		Idle:       map[string][]string{"orders": {"orders/b.json"}},
		Steps:      []Step{{8, 1, map[string][]string{"orders": {"orders/b.json"}}, []string{"orders/a.json"}, nil}, {9, 1, nil, nil, nil}},
		State: map[string]StateEntry{"spend": {Key: `"string"`, Element: `"int"`, Value: `{"type":"record"}`, Segments: []Segment{
			{Path: "branches/main/0.0/data/x.avro", Slots: Slots{1, 65535}, Rows: 5, Bytes: 600, Memory: 700, SHA256: "ab"},
		}}},
		Partial: map[string]Partial{"spend": {Why: "starts empty", Until: 9}}, Superseded: []Build{{Executable: "old", Version: "v0"}},
		Request: 3, Edits: []Edit{{"spend", 7, "cd"}},
		Sinks: map[string]SinkState{"out": {
			Outbox: []Object{{"branches/main/0.0/data/o.avro", 1, 2, "ef"}}, Parts: []int64{1}, Record: "r", Start: 1, Confirmed: 2,
			Dropped: "consented", Note: "<n> & \"\u2028", Rewrite: &Rewrite{RewriteAll, 7, []LogEnd{{"b", "0.0", 3, "f"}}, []LogEnd{{"c", "0.0", 4, "g"}}}, Rewrote: &Rewrote{RewriteChanged, Slots{5, 6}},
		}},
		Counts: map[string]int64{"records": 10},
	}
}

// TestGoldenManifest holds the bytes of format 1 still. The file was written by
// the first release and is never written anew for a later one.
func TestGoldenManifest(t *testing.T) {
	data, err := fullManifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "golden", "1", "manifest.json")
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, golden) {
		t.Errorf("got\n%swant\n%s", data, golden)
	}
	back, err := Decode[Manifest](golden)
	if err != nil || !reflect.DeepEqual(back, fullManifest()) {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// TestLadderHasARungForEachFormat also wants a golden file of each.
func TestLadderHasARungForEachFormat(t *testing.T) {
	for format := 1; format <= Format; format++ {
		if ladder[Manifest]()[format] == nil {
			t.Errorf("nothing reads format %d", format)
		}
	}
	if rungs := len(ladder[Manifest]()); rungs != Format {
		t.Errorf("%d rungs for %d formats", rungs, Format)
	}
}

// TestDamageNeverPasses changes, cuts and empties an object in every place.
func TestDamageNeverPasses(t *testing.T) {
	data, err := fullManifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			if _, err := Decode[Manifest](flipped); err == nil {
				t.Fatalf("bit %d of byte %d (%q) flipped, and it was read", bit, i, data[i])
			}
		}
		if _, err := Decode[Manifest](data[:i]); err == nil {
			t.Fatalf("cut to %d bytes, and it was read", i)
		}
	}
	if _, err := Decode[Manifest](append(bytes.Clone(data), '\n')); err == nil {
		t.Fatal("with a byte more it was read")
	}
}

// sealed gives bytes the sum that they need to be looked into.
func sealed(body string) []byte {
	return []byte(body + sumBegin + Hash([]byte(body)) + sumEnd)
}

func TestDecodeRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"format":1,"surprise":2`:          "surprise",
		`{"format":1,"epoch":1,"epoch":2`:   "duplicate",
		`{"format":0`:                       "never was a format 0",
		`{"format":-1`:                      "never was a format -1",
		`{"format":"1"`:                     "format is no number",
		`{"job_id":"x","format":1`:          "begin with its format",
		`[1`:                                "no JSON object",
		``:                                  "no JSON object",
		`{"format":1,"epoch":-1`:            "epoch",
		`{"format":1,"epoch":1.5`:           "epoch",
		`{"format":1,"state":{"a":[[[[[[[[`: "",
	} {
		_, err := Decode[Manifest](sealed(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", body, err, want)
		}
	}
	deep := `{"format":1,"runs":` + strings.Repeat("[", 1<<20)
	if _, err := Decode[Manifest](sealed(deep)); err == nil {
		t.Error("a deep nest was read")
	}
	if _, err := Decode[Manifest](make([]byte, MaxObject+1)); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("too many bytes: got %v", err)
	}
}

func TestDecodeLaterFormat(t *testing.T) {
	_, err := Decode[Manifest](sealed(`{"format":7,"what":"this build can't know"`))
	var later *FormatError
	if !errors.As(err, &later) || later.Format != 7 || later.Newest != Format {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "written by format 7, this build reads up to 1") {
		t.Errorf("got %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	m := fullManifest()
	m.Runs = []Run{{"orders", "\xff", 1}}
	if _, err := m.Encode(); err == nil {
		t.Error("a partition that is not UTF-8 was written")
	}
	m.Runs = []Run{{"orders", strings.Repeat("x", MaxObject), 1}}
	if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("too large: got %v", err)
	}
}

func TestManifestsRoundTrip(t *testing.T) {
	text := rapid.String()
	rapid.Check(t, func(t *rapid.T) {
		m := fullManifest()
		m.Epoch, m.Position = Epoch(rapid.Uint64().Draw(t, "epoch")), Position(rapid.Uint64().Draw(t, "position"))
		m.Branch, m.Owner = text.Draw(t, "branch"), text.Draw(t, "owner")
		m.Now = rapid.Int64().Draw(t, "now")
		m.Counts = rapid.MapOfN(text, rapid.Int64(), 1, 5).Draw(t, "counts")
		m.Covers = nil
		if rapid.Bool().Draw(t, "follower") {
			m.Live = nil
		}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("two encodings differ, %v", err)
		}
		if bytes.Count(data, []byte("\n")) != 1 || data[len(data)-1] != '\n' {
			t.Fatalf("not one line: %q", data)
		}
		back, err := Decode[Manifest](data)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("read back: %+v, %v", back, err)
		}
	})
}

// TestSealIsShort: a seal has none of the fields of an epoch that is worked on.
func TestSealIsShort(t *testing.T) {
	data, err := Manifest{Format: 1, Kind: Seal, By: "me"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"live", "covers", "now", "runs", "sources", "watermarks", "state", "sinks", "superseded", "request"} {
		if bytes.Contains(data, []byte(`"`+field+`"`)) {
			t.Errorf("%s is in a seal: %s", field, data)
		}
	}
}

func testVersion() Version {
	return Version{
		Sources:   map[string]Part{"orders": {Kind: "file"}},
		Operators: map[string]Part{"spend": {Kind: "fold", Inputs: []string{"orders"}, Parameters: map[string]string{"ttl": "1h"}}},
		States:    map[string]StateSchemas{"spend": {Operator: "spend", Meaning: 2, Key: `"string"`, Value: `"long"`}},
		Sinks:     map[string]Part{"out": {Kind: "file", Inputs: []string{"spend"}, Schemas: map[string]string{"row": `"long"`}}},
	}
}

// TestVersionHash pins the hash of a description: were it to change, every
// running job would be another version after an update. It was worked out from
// the canonical JSON by another program:
//
//	{"operators":{"spend":{"inputs":["orders"],"kind":"fold","parameters":{"ttl":"1h"}}},"sinks":{"out":…
func TestVersionHash(t *testing.T) {
	const want = "c30ccf0503bce12fbbf506d86ba7f748e925e81b2c8890ad0dda92875f9bac80"
	v := testVersion()
	hash := func() string {
		t.Helper()
		h, err := v.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if got := hash(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	v.Functions, v.Format = map[string]string{"spend": "example.com/job.(*Spend).Add"}, 9
	if hash() != want {
		t.Error("a function's name, or the format, is in the hash")
	}
	v.Operators["spend"] = Part{Kind: "fold", Inputs: []string{"orders"}, Parameters: map[string]string{"ttl": "2h"}}
	if hash() == want {
		t.Error("a parameter is not in the hash")
	}
}

func fuzzObject[T Stored](f *testing.F, valid T) {
	data, err := encode(valid)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data[:len(data)-sumBytes]))
	f.Add(`{"format":1`)
	f.Add(`{"format":2,"x":[]`)
	f.Fuzz(func(t *testing.T, body string) {
		_, _ = Decode[T]([]byte(body)) // without a sum it is refused, and nothing else
		v, err := Decode[T](sealed(body))
		if err != nil {
			return
		}
		data, err := encode(v)
		if err != nil {
			t.Fatalf("it was read and can't be written: %v", err)
		}
		again, err := Decode[T](data)
		if err != nil {
			t.Fatal(err)
		}
		if third, err := encode(again); err != nil || !bytes.Equal(data, third) {
			t.Fatalf("%s is written again as %s, %v", data, third, err)
		}
	})
}

func FuzzManifest(f *testing.F) { fuzzObject(f, fullManifest()) }

func FuzzLiveRecord(f *testing.F) {
	fuzzObject(f, LiveRecord{Format: 1, N: 1, Kind: Upgrade, Branch: "b", Covers: map[string]Epoch{"0.0": 4},
		Ends:  &Ends{Branch: "main", Tasks: map[string]Final{"0.0": {7, 6, "ab"}}},
		Sinks: map[string]SinkConsent{"out": {Start: "cut"}}})
}

func FuzzVersion(f *testing.F) {
	v := testVersion()
	v.Format = 1
	fuzzObject(f, v)
}

func FuzzBranchFile(f *testing.F) {
	fuzzObject(f, BranchFile{Format: 1, Branch: "b", Kind: Upgrade, Base: &Point{"main", map[string]Epoch{"0.0": 1}}, Starts: map[string]string{"out": "cut"}})
}

func FuzzLayout(f *testing.F) { fuzzObject(f, soleLayout("id")) }

func BenchmarkManifestEncode(b *testing.B) {
	m := fullManifest()
	for range 1000 {
		m.Runs = append(m.Runs, Run{"orders", "partition", 123456789})
	}
	data, err := m.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := m.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkManifestDecode(b *testing.B) {
	m := fullManifest()
	for range 1000 {
		m.Runs = append(m.Runs, Run{"orders", "partition", 123456789})
	}
	data, err := m.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Decode[Manifest](data); err != nil {
			b.Fatal(err)
		}
	}
}
