package texts

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/compare"
	"github.com/sluicestream/sluice/internal/deliver"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/memory"
	"github.com/sluicestream/sluice/internal/operate"
	"github.com/sluicestream/sluice/internal/runner"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/internal/tabular"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/postgres"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// module is the prefix of this repository's own import paths.
const module = "github.com/sluicestream/sluice"

// example is an error, and what its text must have.
type example struct {
	err error
	// begins is what the text begins with: the job, or where there is none, the
	// store or the file.
	begins string
	// says are what it names besides: the thing, what was expected and found.
	says []string
	// part says of an error that is only told inside of others, which name the
	// job and the way out, which these are.
	part string
}

func at() epoch.At { return epoch.At{Job: "spend", Branch: "main", Task: "0.0", Epoch: 1841} }

const atText = "spend: branch main, task 0.0, epoch 1841: "

// inside are the types without a name outside of their package, and what carries
// them out of it.
var inside = map[string]string{
	"codec.blameless":               "begins with the codec, and tells what the registry or the schema said",
	"codec.formatError":             "the cause in a connector.DecodeError",
	"codec.mismatch":                "the cause in a connector.DecodeError",
	"codec.plainError":              "the cause in a connector.DecodeError",
	"codec.unresolvable":            "the cause in a connector.DecodeError",
	"codec/registry.ended":          "the cause in a registry.Error",
	"file.cellError":                "the cause in a connector.DecodeError",
	"postgres.cellError":            "the column of a misfit, or of damage, told with the row's number by a delivery",
	"postgres.misfitRow":            "made into a postgres.RejectedError by the delivery",
	"postgres.several":              "the errors of one type or setting, each of which tells its own; a postgres.RefusedError at the start",
	"postgres.misfit":               "the Reason of a postgres.ValueError, or the cause of a cellError",
	"kafka.final":                   "told apart inside of the package, and unwrapped",
	"internal/compare.untold":       "a Reason of a compare.Result",
	"internal/carry.functionError":  "the cause in a carry.EntryError, which takes it apart",
	"internal/cli.outcome":          "the exit code alone: what there is to say has been said",
	"internal/runner.setAsideError": "names job and state, and what the file's error says",
	"internal/runner.twiceError":    "the cause in a runner.ImportError",
	"internal/tabular.misfit":       "told apart inside of the package, and made a RowError",
	"internal/cli.damageError":      "ends fsck, below the list of what is damaged",
	"internal/epoch.missingError":   "told apart inside of the package, and made a DamagedError or a NoLogError",
	"connector.notAsked":            "has the text of its cause",
}

func examples() []example {
	build := epoch.Build{Revision: "4be0", Executable: "0123456789abcdef", Version: "fedcba9876543210"}
	writer := epoch.Writer{Host: "db7", PID: 77}
	record := &engine.RecordError{Source: "orders", Partition: "a.jsonl", Offset: 59, Operator: "spend", Key: `"ann"`, Cause: errors.New("expected int64, found a string")}
	source := &engine.SourceError{Source: "orders", Partition: "a.jsonl", Cause: fs.ErrPermission}
	limit := memory.Limit{Bytes: 1 << 30, Source: memory.FromCgroup}
	inputError := "an InputError"
	damaged := "a DamagedError"
	fault := "a FaultsError or a RefusedError"
	return []example{
		{err: &sluice.FaultsError{Job: "spend", Faults: []string{"source x: one", "sink y: two"}}, begins: "spend: ", says: []string{"source x: one; sink y: two"}},
		{err: &sluice.PendingError{Job: "spend", Pending: map[string]int{"b": 2, "a": 1}}, begins: "spend: ", says: []string{"1 to sink a, 2 to sink b"}},

		{err: &connector.DecodeError{Field: "Cents", At: 7, Cause: errors.New("expected int64, found a string")}, says: []string{"field Cents", "expected int64", "found a string"}, part: inputError},
		{err: &registry.Error{Registry: "http://schemas:8081", What: "the schema of id 7", Status: 401, Attempts: 1, Cause: errors.New("HTTP status 401")}, begins: "schema registry http://schemas:8081: the schema of id 7: ", says: []string{"401", "registry.BasicAuth"}, part: inputError},
		{err: &registry.Error{Registry: "http://schemas:8081", What: "the schema of id 7", Attempts: 11, Waited: 26 * time.Second, Cause: errors.New("connection refused")}, begins: "schema registry http://schemas:8081: ", says: []string{"connection refused", "11 times", "26s"}, part: inputError},
		{err: &registry.IncompatibleError{Registry: "http://schemas:8081", Subject: "orders-value", Mode: "FULL", Version: 3, Messages: []string{"field Cents"}}, begins: "schema registry http://schemas:8081: subject orders-value: ", says: []string{"expected", "version 3", "mode FULL", "found", "field Cents", "bring the type back"}},
		{err: &registry.MissingError{Registry: "http://schemas:8081", Subject: "orders-value", Newest: 3}, begins: "schema registry http://schemas:8081: subject orders-value: ", says: []string{"expected", "found", "version 3", "codec.LookUpOnly"}},
		{err: &file.ChangedError{File: "in/a.jsonl", Expected: "512 bytes", Found: "7"}, begins: "file in/a.jsonl ", says: []string{"expected 512 bytes", "found 7"}},
		{err: &file.LineError{File: "in/a.jsonl", Offset: 59, Max: 1024, OpenQuote: true}, begins: "file in/a.jsonl: ", says: []string{"byte 59", "1024 bytes", "quote"}},
		{err: &kafka.RecordTooLargeError{Topic: "totals", Size: 2_000_000, Limit: 1_048_588, Key: 7, Value: 1_999_900}, begins: "topic totals ", says: []string{"1048588 bytes", "needs 2000000", "max.message.bytes"}, part: inputError},
		{err: &kafka.RecordTimeError{Topic: "totals", Time: time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC), Now: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC), Setting: "message.timestamp.before.max.ms", Limit: 86_400_000, Margin: 3_600_000}, begins: "topic totals ", says: []string{"at most 24h0m0s behind", "message.timestamp.before.max.ms=86400000", "1h0m0s are left", "is 2026-01-01T09:00:00.000Z", "raise"}, part: inputError},
		{err: &postgres.ColumnError{Table: "public.spend", Column: "cents", Expected: "bigint", Found: "integer", Repair: "run: alter table spend"}, begins: "table public.spend, column cents: ", says: []string{"expected bigint, found integer", "alter table spend"}},
		{err: &postgres.ValueError{Table: "public.spend", Column: "name", Reason: "a text can't hold NUL"}, begins: "table public.spend, column name: ", says: []string{"can't hold NUL"}, part: inputError},
		{err: &postgres.DeniedError{Table: "public.spend", User: "clerk", Missing: errors.New("run: grant insert on spend to clerk"), Cause: errors.New("permission denied")}, begins: "table public.spend: ", says: []string{"user clerk", "permission denied", "grant insert on spend to clerk"}},
		{err: &postgres.RejectedError{Table: "public.spend", Constraint: "small", Row: "user_id = ann", Code: "23514", Repair: "run: alter table spend drop constraint small", Cause: errors.New("it is violated")}, begins: "table public.spend, constraint small, row user_id = ann: ", says: []string{"it is violated", "drop constraint small"}},
		{err: &postgres.RefusedError{Table: "public.spend", Reasons: []error{errors.New("column a is no text"), errors.New("column b: expected text, found bytes; run: alter table spend")}}, begins: "table public.spend: ", says: []string{"column a is no text; column b"}},
		{err: &postgres.ConnectError{Host: "db7:5432", Database: "shop", User: "ann", Reason: "the password is wrong; put the right one into PGPASSWORD"}, begins: "PostgreSQL at db7:5432, ", says: []string{"database shop", "user ann", "the password is wrong"}},
		{err: &kafka.ReplacedError{Topic: "orders", Partition: 3, Offset: 59, Expected: "AAAB", Found: "AAAC"}, begins: "topic orders ", says: []string{"expected the id AAAB", "found AAAC", "offset 59 of partition 3"}},
		{err: &kafka.VanishedError{Topic: "orders", Partition: -1}, begins: "topic orders ", says: []string{"expected a topic that exists"}},
		{err: &kafka.VanishedError{Topic: "orders", Partition: 3}, begins: "topic orders ", says: []string{"no partition 3"}},
		{err: &kafka.LostError{Topic: "orders", Partition: 3, From: 59, To: 71}, begins: "topic orders, partition 3: ", says: []string{"offsets 59 to 70", "expected offset 59", "begins at 71"}},
		{err: &kafka.OutsideError{Topic: "orders", Partition: 3, Offset: 71, Start: 5, End: 59}, begins: "topic orders, partition 3: ", says: []string{"from 5", "to 59", "begin at 71", "beyond its end"}},
		{err: &kafka.OutsideError{Topic: "orders", Partition: 3, Offset: 4, Start: 5, End: 59}, begins: "topic orders, partition 3: ", says: []string{"begin at 4", "before its start", "retention"}},
		{err: &kafka.CutError{Topic: "orders", Partition: 3, From: 59, To: 71, LeaderEpoch: 4}, begins: "topic orders, partition 3: ", says: []string{"offsets 59 to 70", "expected to read on at offset 71, leader epoch 4"}},
		{err: &kafka.CutError{Topic: "orders", Partition: 3, From: -1, To: 71, LeaderEpoch: 4}, begins: "topic orders, partition 3: ", says: []string{"before offset 71"}},
		{err: &kafka.GroupInUseError{Group: "spend", Job: "9f1c", Found: "03ab"}, begins: "group spend ", says: []string{"9f1c", "03ab"}},
		{err: &kafka.GroupInUseError{Group: "spend", Job: "9f1c", Members: []string{"old at /10.0.0.7"}}, begins: "group spend ", says: []string{"expected no members, found old at /10.0.0.7"}},
		{err: &kafka.GroupInUseError{Group: "spend", Job: "9f1c"}, begins: "group spend ", says: []string{"no job's of Sluice"}},
		{err: &kafka.NoBeginningError{Group: "old", Partitions: []string{"orders/3"}}, begins: "group old ", says: []string{"orders/3", "expected one for each partition"}},
		{err: &kafka.NoBeginningError{Partitions: []string{"orders/3"}}, begins: "kafka.Offsets ", says: []string{"orders/3"}},
		{err: &kafka.PermissionError{Resource: "topic orders", Operation: "Read"}, begins: "topic orders: ", says: []string{"expected the permission", "allow Read on topic orders"}},
		{err: &kafka.OldBrokersError{Brokers: []string{"a:1", "b:2"}, Lacks: []string{"EndTxn version 0 to end transactions", "Fetch version 4 to read what is committed (version 3 is there)"}, Least: "0.11"}, begins: "the brokers at a:1,b:2 ", says: []string{"expected Kafka 0.11 or later", "without EndTxn version 0 to end transactions, Fetch version 4"}},
		{err: &kafka.UnreachableError{Brokers: []string{"a:1", "b:2"}, Cause: errors.New("connection refused\nby a")}, begins: "no broker of Kafka ", says: []string{"expected one at a:1, b:2", "found: connection refused by a"}},
		{err: &kafka.UnreachableError{Brokers: []string{"a:1"}, Hint: "the user or the password is wrong; mend SLUICE_KAFKA_USER", Cause: errors.New("refused")}, begins: "no broker of Kafka ", says: []string{"password"}},
		{err: &schema.UnsupportedError{Name: "spend", Faults: []schema.Fault{{Path: "A", Reason: "an interface"}, {Path: "B", Reason: "a channel"}}}, begins: "spend.A: ", says: []string{"an interface; spend.B: a channel"}, part: fault},
		{err: &schema.ResolveError{Name: "spend", Differences: []schema.Difference{{Path: "Cents"}}}, says: []string{"spend.Cents"}, part: fault},
		{err: &schema.ValueError{Path: "spend.Cents", Reason: "expected a number, found a string"}, begins: "spend.Cents: ", says: []string{"expected", "found"}, part: damaged},
		{err: &store.UnfitError{Store: "/data", FileSystem: "vfat", Fault: store.NoLink, Why: "it has no links"}, begins: "store /data: ", says: []string{"expected", "found vfat", "it has no links"}},
		{err: &store.UnfitError{Store: "/data", FileSystem: "tmpfs", Fault: store.Forgets, Why: "it is memory"}, begins: "store /data: ", says: []string{"--volatile"}},

		{err: record, begins: "source orders, partition a.jsonl, offset 59: ", says: []string{"spend", `key "\"ann\""`, "expected int64", "found a string"}, part: inputError},
		{err: source, begins: "source orders, partition a.jsonl: ", part: inputError},
		{err: &engine.StateError{State: "spend", Key: "ann", Cause: errors.New("a panic")}, begins: "state spend, ", says: []string{"ann", "a panic"}, part: "the error of the run, with the epoch"},
		{err: &engine.PanicError{Value: "nil map", Stack: "goroutine 1\nmain.go"}, says: []string{"nil map"}, part: inputError},
		{err: &runner.InputError{At: at(), Record: record}, begins: atText, says: []string{"source orders, partition a.jsonl, offset 59"}},
		{err: &runner.InputError{At: at(), Source: source}, begins: atText, says: []string{"source orders, partition a.jsonl"}},
		{err: &runner.GoneError{At: at(), Source: source}, begins: atText, says: []string{"source orders, partition a.jsonl", "Nothing was begun", "the live branch goes on", "`run --replace`"}},
		{err: &runner.UnavailableError{At: at(), Cause: source}, begins: atText, says: []string{"source orders, partition a.jsonl", "no record became a dead letter", "run the job again"}},
		{err: &runner.RefusedError{At: at(), Reasons: []string{"spend.A: one", "spend.B: two"}}, begins: atText, says: []string{"spend.A: one; spend.B: two", "Nothing was changed"}},
		{err: &runner.ConsentError{Job: "spend", Flag: "set-aside", Name: "shop", Names: []string{"shops"}}, begins: "spend: ", says: []string{"--set-aside shop", "shops"}},
		{err: &runner.ConsentError{Job: "spend", Flag: "drop", Name: "shop"}, begins: "spend: ", says: []string{"--drop shop", "leave it out"}},
		{err: &runner.MigrationError{At: at(), State: "shops", Entry: &carry.EntryError{State: "shops", Key: "ann", Function: "main.v1to2", Cause: errors.New("too long")}}, begins: atText, says: []string{"state shops, key ann: main.v1to2: too long", "Nothing was changed", "--set-aside shops=FILE"}},
		{err: &runner.WaitingForgetError{At: at(), Requests: []uint64{3, 4}, States: []string{"shops"}}, begins: atText, says: []string{"request 3 to forget and 1 more", "shops", "No state was changed", "--give-up 3"}},
		{err: &carry.EntryError{State: "shops", Key: "ann", Cause: errors.New("too long")}, part: "a MigrationError", says: []string{"state shops, key ann", "too long"}},

		{err: &runner.ImportError{Job: "spend", State: "spend", Place: "file spend.csv, row 3 (line 4)", Cause: errors.New("nobody owes us money")}, begins: "spend: state spend: ", says: []string{"file spend.csv, row 3 (line 4)", "nobody owes us money", "Nothing was made"}},
		{err: &tabular.RowError{File: "spend.csv", Row: 3, Line: 4, Column: "Cents", Expected: "long", Found: `"x"`}, begins: "file spend.csv, row 3 (line 4), column Cents: ", says: []string{"expected long", `found "x"`}},
		{err: &tabular.ColumnsError{File: "spend.csv", Faults: []string{"column Cents (long) is missing", "column Shop has no place"}}, begins: "file spend.csv: ", says: []string{"column Cents (long) is missing; column Shop has no place"}},
		{err: &epoch.HasRunError{At: at()}, begins: atText, says: []string{"expected one that has never run", "Nothing was changed"}},
		{err: &epoch.HasRunError{At: at(), Imported: true}, begins: atText, says: []string{"another import has made the first epoch", "Nothing was changed", "Run the job"}},
		{err: &epoch.BeganError{At: at(), Made: true, Cause: errors.New("the disk is full")}, begins: atText, says: []string{"the first epoch is there", "the disk is full", "Run the job"}},
		{err: &epoch.BeganError{At: at(), Cause: errors.New("the disk is full")}, begins: atText, says: []string{"may be there or not", "the disk is full", "Start the same import again"}},
		{err: &epoch.FencedError{At: at(), Owner: "a1", Writer: writer}, begins: atText, says: []string{"owner a1", "process 77 on db7"}},
		{err: &epoch.VoidError{At: at(), Floor: 2000}, begins: atText, says: []string{"2000"}},
		{err: &epoch.VoidError{At: at(), Floor: epoch.AllEpochs}, begins: atText},
		{err: &epoch.SealedError{At: at(), By: "upgrade", Next: "side"}, begins: atText, says: []string{"upgrade", "branch side"}},
		{err: &epoch.SealedError{At: at(), By: "upgrade"}, begins: atText, says: []string{"upgrade"}},
		{err: &epoch.SupersededError{At: at(), Build: build, Now: epoch.Build{Revision: "5cf1"}}, begins: atText, says: []string{"4be0", "0123456789ab", "5cf1"}},
		{err: &epoch.PrefixError{Job: "spend", Expected: "spend/", Found: "other/"}, begins: "spend: ", says: []string{`"spend/"`, `"other/"`}},
		{err: &compare.GapError{Job: "spend", Sink: "totals", Side: "new", Expected: 70, Found: 72}, begins: "spend: sink totals: ", says: []string{"the new outputs", "expected those behind position 70", "found those behind position 72", "Start behind a position"}},
		{err: &compare.OptionError{Job: "spend", Sink: "totals", Column: "City", Expected: "numbers for a tolerance of Absolute", Found: "string"}, begins: "spend: sink totals, column City: ", says: []string{"expected numbers", "found string", "Give the column another tolerance"}},
		{err: &epoch.DamagedError{At: at(), Object: "spend/job.json", Expected: "a sum", Found: "none"}, begins: atText, says: []string{"spend/job.json", "expected a sum", "found none", "Nothing was changed"}},
		{err: &epoch.CleanedError{At: at(), Floor: 1900}, begins: atText, says: []string{"1900"}},
		{err: &epoch.TimetableError{At: at(), Follower: "next", Covers: 900}, begins: atText, says: []string{"branch next", "position 900", "--own-clock"}},
		{err: &epoch.GapError{Branch: "next", Sink: "out", From: 3, To: 9}, begins: "branch next ", says: []string{"sink out", "positions 4 to 9", "--gap out"}, part: "what the job's name is put before"},
		{err: &epoch.LiveBranchError{At: epoch.At{Job: "spend", Branch: "next"}, Live: 2}, begins: "spend: branch next: ", says: []string{"generation 2", "Nothing was changed"}},
		{err: &epoch.CutUnderWayError{At: epoch.At{Job: "spend", Branch: "next"}, Sealed: "main"}, begins: "spend: branch next: ", says: []string{"branch main", "Nothing was changed", "`JOB resume`"}},
		{err: &epoch.CutUnderWayError{At: epoch.At{Job: "spend", Branch: "next"}, Sealed: "main", Ended: true}, begins: "spend: branch next: ", says: []string{"branch main", "`JOB resume`"}},
		{err: &epoch.CutUnderWayError{At: epoch.At{Job: "spend", Branch: "next"}, Sealed: "main", Ended: true, Live: true}, begins: "spend: branch next: ", says: []string{"went live", "`JOB resume`"}},
		{err: &epoch.TooLateError{At: at(), Name: "before", Floor: 1900}, begins: atText, says: []string{"savepoint before", "1900", "taken back"}},
		{err: &epoch.NoJobError{Job: "spend", Store: "/data"}, begins: "spend: ", says: []string{"/data"}},
		{err: &epoch.NeverLiveError{Job: "spend", Version: "0123456789abcdef"}, begins: "spend: ", says: []string{"0123456789ab", "sluice log spend --graph"}},
		{err: &runner.GivenUpError{At: at(), By: "ann"}, begins: atText, says: []string{"ann", "upgrade"}},
		{err: &epoch.AheadError{At: at(), Source: "orders", Partition: "orders/3", Own: 9, Followed: 7}, begins: atText, says: []string{"source orders, partition orders/3", "expected a branch that has read no further than the live one, to offset 7", "found offset 9", "Nothing was sealed"}},
		{err: &runner.UncoveredError{At: at(), Followed: "side"}, begins: atText, says: []string{"branch side was sealed", "expected the same offsets"}},
		{err: &runner.NotSealedError{At: at()}, begins: atText, says: []string{"expected one that was sealed", "Nothing was changed"}},
		{err: &runner.ForgottenError{At: at(), State: "spend", Followed: "side", By: 7}, begins: atText, says: []string{"epoch 7 of branch side", "state spend", "`sluice branch drop spend main`"}},
		{err: &runner.FromError{Job: "spend", From: "monday", Found: "there is no savepoint of that name"}, begins: "spend: begin from monday: ", says: []string{"no savepoint of that name", "BRANCH:NUMBER"}},
		{err: &runner.OtherUpgradeError{Job: "spend", Branch: "upgrade-1", Build: epoch.Build{Version: "0123456789abcdef"}}, begins: "spend: another upgrade is under way", says: []string{"branch upgrade-1", "nothing was changed", "--over"}},
		{err: &runner.AwaitGroupError{Job: "spend", Group: "readers", Expected: "a sink of a new name, which waits", Found: "none"}, begins: "spend: group readers", says: []string{"expected a sink of a new name", "Nothing was begun", "--wait-group"}},
		{err: &runner.FillError{Job: "spend", Sink: "out", Reason: "expected topic out to be empty, found rows; empty it, give the sink another target, or leave out --backfill"}, begins: "spend: ", says: []string{"sink out", "expected topic out to be empty"}},
		{err: &runner.RewriteError{Job: "spend", Sink: "out", Reason: "it has no table's rows; leave out --rewrite out=all"}, begins: "spend: ", says: []string{"sink out", "no table's rows", "nothing was changed"}},
		{err: &postgres.DependentsError{View: "public.spend", Table: "public.spend_v2", Dependents: []string{"view report"}}, begins: "view public.spend: ", says: []string{"expected nothing that depends on it", "found view report", "public.spend_v2"}},
		{err: &postgres.BlockedError{View: "public.spend", Table: "public.spend_v2", Blockers: []postgres.Blocker{{PID: 77, User: "ann"}}, Cause: errors.New("lock timeout")}, begins: "view public.spend ", says: []string{"process 77 (user ann)", "pg_terminate_backend(77)", "lock timeout"}, part: "what the deliverer tells before it tries again"},
		{err: &epoch.NoLogError{At: epoch.At{Job: "spend", Branch: "side", Task: "0.0"}}, begins: "spend: ", says: []string{"branch side", "task 0.0"}},
		{err: &epoch.RequestedError{Request: epoch.Request{N: 3, By: "ann on db7"}}, says: []string{"ann on db7", "request 3"}, part: "what the log says of a standby that was asked to stop: it ends as it should"},
		{err: &epoch.FormatError{Object: "spend/job.json", Format: 9, Newest: 1}, begins: "spend/job.json ", says: []string{"format 9", "up to 1"}},
		{err: &avrofile.FormatError{Offset: 70, Expected: "a block", Found: "the end"}, says: []string{"byte 70", "expected a block", "found the end"}, part: damaged},
		{err: &deliver.RejectedError{At: at(), Sink: "out", Position: 7, Cause: errors.New("row user_id = ann is refused; mend it, and start again")}, begins: atText, says: []string{"sink out", "position 7", "user_id = ann", "nothing was written or lost"}},
		{err: &deliver.DisagreeError{At: at(), Sink: "out", Position: 7, Reason: "it remembers 9"}, begins: atText, says: []string{"sink out", "position 7", "it remembers 9", "Nothing was written"}},
		{err: &memory.TooLargeError{At: at(), Needs: []memory.Need{{State: "spend", Rows: 9, Bytes: 3 << 30, AtLeast: 2 << 30}}, Least: 2<<30 + 16<<20, Limit: limit}, begins: atText, says: []string{"spend 2.0 GiB to 3.0 GiB in 9 rows", "1.0 GiB (cgroup memory.max)", "Nothing was changed"}},
		{err: &memory.TooLargeError{At: at(), Loading: "spend", Loaded: 5, Rows: 9, InUse: 1 << 30, Limit: limit}, begins: atText, says: []string{"5 of the 9 rows of state spend", "1.0 GiB"}},
		{err: &services.MissingError{Service: "Kafka", Reason: "there is no java in PATH", Remedy: "put java into PATH"}, begins: "no Kafka on this machine: ", says: []string{"there is no java"}},
		{err: &operate.ListenError{Job: "spend", Address: ":70", Cause: fs.ErrPermission}, begins: "spend: ", says: []string{":70", "permission"}},
	}
}

// maxText bounds an error's text, in bytes, when what it tells of is small.
const maxText = 600

// wayOut are the words by which the last part of a text tells what to do, and
// commands.
var wayOut = regexp.MustCompile("(?i)`[a-z]+ [^`]+`|^(allow|bring|give|leave|look|mend|name|put|restore|run|start|use)\\b")

func TestTexts(t *testing.T) {
	for _, e := range examples() {
		t.Run(nameOf(e.err), func(t *testing.T) {
			text := e.err.Error()
			for _, says := range e.says {
				if !strings.Contains(text, says) {
					t.Errorf("it doesn't say %q: %s", says, text)
				}
			}
			switch {
			case strings.ContainsFunc(text, unicode.IsControl):
				t.Errorf("it isn't one line: %q", text)
			case len(text) > maxText:
				t.Errorf("it has %d bytes: %s", len(text), text)
			case !strings.HasPrefix(text, e.begins):
				t.Errorf("it doesn't begin with %q: %s", e.begins, text)
			case e.part == "" && e.begins == "":
				t.Error("the example says neither what it begins with nor what it is a part of")
			case e.part == "" && !tellsWayOut(text):
				t.Errorf("its end tells no way out: %s", text)
			}
		})
	}
}

// tellsWayOut tells whether the last sentence, or its last part, is a way out.
func tellsWayOut(text string) bool {
	last := strings.TrimSuffix(text, ".")
	if i := strings.LastIndex(last, ". "); i >= 0 {
		last = last[i+2:]
	}
	return slices.ContainsFunc(strings.FieldsFunc(last, func(r rune) bool { return r == ';' || r == ',' }), func(part string) bool {
		return wayOut.MatchString(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(part), "so ")))
	})
}

// nameOf is the name of an error's type, as "folder.Type".
func nameOf(err error) string {
	kind := reflect.TypeOf(err).Elem()
	folder := strings.TrimPrefix(strings.TrimPrefix(kind.PkgPath(), module), "/")
	if folder == "" {
		folder = "."
	}
	return folder + "." + kind.Name()
}

// TestEveryErrorHasAnExample goes through the types of the repository.
func TestEveryErrorHasAnExample(t *testing.T) {
	have := maps.Clone(inside)
	for _, e := range examples() {
		have[nameOf(e.err)] = "an example"
	}
	for _, name := range errorTypes(t) {
		if have[name] == "" {
			t.Errorf("the error %s has no example here: add one, and see that its text has the form", name)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("there is no error %s any more", name)
	}
}

func TestWaysOut(t *testing.T) {
	for text, want := range map[string]bool{
		"a is damaged. Restore it.":                          true,
		"a is taken; give b another one":                     true,
		"nothing is there, so leave it out":                  true,
		"a is gone. `sluice log spend` lists what there is.": true,
		"a is damaged. Nothing was changed.":                 false,
		"Restore it. Nothing was changed.":                   false,
		"the `thing` is damaged":                             false,
	} {
		if tellsWayOut(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
