package operate

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/vitals"
)

// busy returns a board on which everything is noted.
func busy() *vitals.Board {
	b := vitals.New(env.Real().Clock)
	b.SetRole(vitals.Running)
	b.SetIdentity(vitals.Identity{Job: "spend", Branch: "main", Task: "0.0", Owner: "0011223344556677", Version: "ab12", Build: "v1 (12 files)"})
	b.Committed(vitals.Commit{Epoch: 41, Position: 17, Records: 1000, DeadLetters: 3, Bytes: 52_000, Outputs: map[string]int64{"out": 12, "dead": 3}, Pause: 3 * time.Millisecond,
		Late: map[string]int64{"daily": 7}, Untimed: map[string]int64{"daily": 2}, Ahead: map[string]int64{"orders": 1},
		EventTimes: []vitals.Watermark{{Name: "orders", At: time.UnixMicro(1_700_000_000_250_000), Lag: 90 * time.Second}, {Name: "none yet"}},
		Operators:  []vitals.Watermark{{Name: "daily", At: time.UnixMicro(-500_000), Lag: -time.Second}}})
	b.SetStates([]vitals.State{{Name: "spend", Entries: 900, Rows: 1200, Bytes: 40_000, Memory: 90_000, Segments: 4, MergeDebt: 30_000}})
	b.SetPartitions([]vitals.Partition{
		{Source: "orders", Partition: "0", Next: 100, End: 130},
		{Source: "orders", Partition: "1", Next: 7, End: 8},
		{Source: "clicks", Partition: "a\nb.jsonl", Next: 5, End: -1},
	})
	b.SetSinks([]vitals.Sink{{Name: "out", Confirmed: 16, Pending: 1, Failing: "no route to host"}, {Name: "dead", Confirmed: 17}})
	b.SetHotKeys([]vitals.HotKey{{Operator: "spend", Key: "bob", Share: 0.25}, {Operator: "spend", Key: "ann", Share: 0.5}, {Operator: "spend", Key: "one of many", Share: 0.019}})
	b.SetMemory(1<<20, 1<<30)
	b.StoreCall("create", 3*time.Millisecond, nil)
	b.StoreCall("create", 2*time.Minute, io.ErrUnexpectedEOF)
	return b
}

// shown is what /metrics answers.
func shown(t *testing.T, g prometheus.Gatherer, b *vitals.Board) string {
	t.Helper()
	s := Service{Job: "spend", Board: b, Metrics: g, Clock: env.Real().Clock, Log: slog.New(slog.DiscardHandler)}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("/metrics: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	b := busy()
	text := shown(t, NewRegistry("spend", b), b)
	lines := strings.Split(text, "\n")
	for _, want := range []string{
		`sluice_build_info{branch="main",build="v1 (12 files)",job_name="spend",task="0.0",version="ab12"} 1`,
		`sluice_role{job_name="spend",role="running"} 1`,
		`sluice_role{job_name="spend",role="standby"} 0`,
		`sluice_memory_in_use_bytes{job_name="spend"} 1.048576e+06`,
		`sluice_memory_limit_bytes{job_name="spend"} 1.073741824e+09`,
		`sluice_epoch{job_name="spend"} 41`,
		`sluice_position{job_name="spend"} 17`,
		`sluice_epochs_total{job_name="spend"} 1`,
		`sluice_records_total{job_name="spend"} 1000`,
		`sluice_dead_letters_total{job_name="spend"} 3`,
		`sluice_input_bytes_total{job_name="spend"} 52000`,
		`sluice_output_rows_total{job_name="spend",sink="dead"} 3`,
		`sluice_output_rows_total{job_name="spend",sink="out"} 12`,
		`sluice_barrier_pause_seconds_bucket{job_name="spend",le="0.0025"} 0`,
		`sluice_barrier_pause_seconds_bucket{job_name="spend",le="0.005"} 1`,
		`sluice_barrier_pause_seconds_bucket{job_name="spend",le="+Inf"} 1`,
		`sluice_barrier_pause_seconds_sum{job_name="spend"} 0.003`,
		`sluice_barrier_pause_seconds_count{job_name="spend"} 1`,
		`sluice_hot_key_share{job_name="spend",key="ann",operator="spend"} 0.5`,
		`sluice_late_records_total{job_name="spend",operator="daily"} 7`,
		`sluice_untimed_records_total{job_name="spend",operator="daily"} 2`,
		`sluice_ahead_records_total{event_time="orders",job_name="spend"} 1`,
		`sluice_watermark_seconds{event_time="orders",job_name="spend"} 1.70000000025e+09`,
		`sluice_watermark_lag_seconds{event_time="orders",job_name="spend"} 90`,
		`sluice_operator_watermark_seconds{job_name="spend",operator="daily"} -0.5`,
		`sluice_operator_watermark_lag_seconds{job_name="spend",operator="daily"} -1`,
		`sluice_source_partitions{job_name="spend",source="orders"} 2`,
		`sluice_source_partitions{job_name="spend",source="clicks"} 1`,
		`sluice_source_lag_offsets{job_name="spend",source="orders"} 31`,
		`sluice_partition_next_offset{job_name="spend",partition="0",source="orders"} 100`,
		`sluice_partition_lag_offsets{job_name="spend",partition="0",source="orders"} 30`,
		`sluice_state_entries{job_name="spend",state="spend"} 900`,
		`sluice_state_rows{job_name="spend",state="spend"} 1200`,
		`sluice_state_stored_bytes{job_name="spend",state="spend"} 40000`,
		`sluice_state_memory_bytes{job_name="spend",state="spend"} 90000`,
		`sluice_state_segments{job_name="spend",state="spend"} 4`,
		`sluice_state_merge_debt_bytes{job_name="spend",state="spend"} 30000`,
		`sluice_sink_pending_deliveries{job_name="spend",sink="out"} 1`,
		`sluice_sink_confirmed_position{job_name="spend",sink="out"} 16`,
		`sluice_sink_failing{job_name="spend",sink="out"} 1`,
		`sluice_sink_failing{job_name="spend",sink="dead"} 0`,
		`sluice_store_call_seconds_bucket{job_name="spend",operation="create",le="0.005"} 1`,
		`sluice_store_call_seconds_bucket{job_name="spend",operation="create",le="60"} 1`,
		`sluice_store_call_seconds_count{job_name="spend",operation="create"} 2`,
		`sluice_store_errors_total{job_name="spend",operation="create"} 1`,
		`# TYPE sluice_records_total counter`,
		`# TYPE sluice_barrier_pause_seconds histogram`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("not there: %s", want)
		}
	}
	for _, absent := range []string{`sluice_source_lag_offsets{job_name="spend",source="clicks"}`, `sluice_source_lag_seconds{job_name="spend",source="clicks"}`, "one of many", "none yet"} {
		if strings.Contains(text, absent) {
			t.Errorf("there is %s, of a source that can't tell its end or a key that isn't hot", absent)
		}
	}
	for _, runtime := range []string{"go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(text, "\n"+runtime) {
			t.Errorf("not there: %s", runtime)
		}
	}
}

// A job that has committed nothing has no last commit.
func TestNothingCommitted(t *testing.T) {
	b := vitals.New(env.Real().Clock)
	text := shown(t, NewRegistry("spend", b), b)
	for _, absent := range []string{"sluice_epoch{", "sluice_last_commit_age_seconds{", "sluice_memory_limit_bytes{"} {
		if strings.Contains(text, absent) {
			t.Errorf("there is %s", absent)
		}
	}
	if !strings.Contains(text, `sluice_records_total{job_name="spend"} 0`) {
		t.Error("a total does not begin at 0")
	}
}

// Names follow Prometheus's conventions, and texts say something.
func TestFamilies(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range families() {
		if !strings.HasPrefix(f.name, "sluice_") || seen[f.name] {
			t.Errorf("name %s", f.name)
		}
		seen[f.name] = true
		if strings.HasSuffix(f.name, "_total") != (f.kind == counter) {
			t.Errorf("%s: a counter ends in _total, and nothing else does", f.name)
		}
		if len(f.help) < 20 || !strings.HasSuffix(f.help, ".") || strings.Contains(f.help, "\n") {
			t.Errorf("%s: help %q", f.name, f.help)
		}
	}
}

// Two jobs of one process don't meet, be it in registries of their own or in
// one of the user's.
func TestTwoJobs(t *testing.T) {
	spend, visits := busy(), vitals.New(env.Real().Clock)
	NewRegistry("spend", spend)
	if text := shown(t, NewRegistry("visits", visits), visits); strings.Contains(text, "spend") {
		t.Error("the metrics of one job are in the registry of another")
	}
	shared := prometheus.NewPedanticRegistry()
	for job, b := range map[string]*vitals.Board{"spend": spend, "visits": visits} {
		if err := shared.Register(NewCollector(job, b)); err != nil {
			t.Errorf("%s: %v", job, err)
		}
	}
	text := shown(t, shared, visits)
	for _, want := range []string{`sluice_records_total{job_name="spend"} 1000`, `sluice_records_total{job_name="visits"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("not there: %s", want)
		}
	}
}

// Whatever a job is called and its data holds, there is an answer, bounded.
func TestHostileNames(t *testing.T) {
	name := rapid.OneOf(rapid.StringOfN(rapid.Rune(), 0, 100, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 100), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"", "a", "\xff", "\xfe", "{}\"\n", strings.Repeat("x", 1<<20)}))
	rapid.Check(t, func(r *rapid.T) {
		b := vitals.New(env.Real().Clock)
		for range 3 {
			b.SetStates([]vitals.State{{Name: name.Draw(r, "state")}, {Name: name.Draw(r, "state")}})
			b.SetPartitions([]vitals.Partition{{Source: name.Draw(r, "source"), Partition: name.Draw(r, "p"), End: 1}, {Source: name.Draw(r, "source"), Partition: name.Draw(r, "p")}})
			b.SetHotKeys([]vitals.HotKey{{Operator: name.Draw(r, "o"), Key: name.Draw(r, "k"), Share: 0.5}, {Operator: name.Draw(r, "o"), Key: name.Draw(r, "k"), Share: 0.5}})
			b.Committed(vitals.Commit{Outputs: map[string]int64{name.Draw(r, "sink"): 1}})
			b.StoreCall(name.Draw(r, "operation"), time.Second, nil)
		}
		shared := prometheus.NewPedanticRegistry()
		shared.MustRegister(NewCollector(name.Draw(r, "job"), b))
		if _, err := shared.Gather(); err != nil {
			r.Fatal(err)
		}
	})
}

func TestBoundedSeries(t *testing.T) {
	b := vitals.New(env.Real().Clock)
	var keys []vitals.HotKey
	var partitions []vitals.Partition
	for i := range 5000 {
		keys = append(keys, vitals.HotKey{Operator: "spend", Key: fmt.Sprint(i), Share: float64(i) / 5000})
		partitions = append(partitions, vitals.Partition{Source: "orders", Partition: fmt.Sprint(i), End: 2})
	}
	b.SetHotKeys(keys)
	b.SetPartitions(partitions)
	text := shown(t, NewRegistry("spend", b), b)
	if n := strings.Count(text, "\nsluice_hot_key_share{"); n != maxHotKeys || !strings.Contains(text, `key="4999"`) {
		t.Errorf("%d hot keys", n)
	}
	if n := strings.Count(text, "\nsluice_partition_next_offset{"); n != maxSeries {
		t.Errorf("%d partitions", n)
	}
	if !strings.Contains(text, `sluice_source_lag_offsets{job_name="spend",source="orders"} 10000`) {
		t.Error("a source's sum leaves partitions out")
	}
}

func TestLabel(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"spend":                  "spend",
		"Straße 7":               "Straße 7",
		strings.Repeat("k", 80):  strings.Repeat("k", 80),
		strings.Repeat("k", 81):  strings.Repeat("k", 71) + "~", // and the hash
		strings.Repeat("é", 100): strings.Repeat("é", 35) + "~", // 35 × 2 bytes; a whole one more would be too long
		"a\nb":                   "a?b~",
		"\xff":                   "?~",
	} {
		got := label(text)
		if hashed := strings.HasSuffix(want, "~"); hashed && (!strings.HasPrefix(got, want) || len(got) != len(want)+8) || !hashed && got != want {
			t.Errorf("label(%.20q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		got := label(a)
		if len(got) > maxLabel || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q", got)
		}
		if (a == b) != (got == label(b)) {
			t.Fatalf("%q and %q are both %q", a, b, got)
		}
	})
}
