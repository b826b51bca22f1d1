package kafka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/services"
	"github.com/sluicestream/sluice/kafka"
	"github.com/sluicestream/sluice/store"
)

// allowance is a permission as docs/operations.md has it.
type allowance struct {
	neededBy, kind, name string
	prefixed             bool
	operation            string
	says                 string
}

func (a allowance) String() string {
	s := a.operation + " on " + a.kind + " " + a.name
	if a.prefixed {
		s += ", prefixed"
	}
	return s
}

// section is a section of docs/operations.md.
func section(t *testing.T, title string) string {
	t.Helper()
	content, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(content), "\n## "+title+"\n")
	if !ok {
		t.Fatalf("docs/operations.md has no section %q", title)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// documentedACLs are the permissions of the docs' table.
func documentedACLs(t *testing.T) (all []allowance) {
	t.Helper()
	resource := regexp.MustCompile("^(topic|group|transactional id) `([^`]+)`(, prefixed)?$")
	for line := range strings.Lines(section(t, "What Kafka must allow")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || strings.Contains(cells[1], "needed by") {
			continue
		}
		at := resource.FindStringSubmatch(strings.TrimSpace(cells[2]))
		if at == nil {
			t.Fatalf("%q is no resource", cells[2])
		}
		for op := range strings.SplitSeq(cells[3], ",") {
			all = append(all, allowance{
				neededBy: strings.TrimSpace(cells[1]), kind: at[1], name: at[2], prefixed: at[3] != "",
				operation: strings.TrimSpace(op), says: strings.ReplaceAll(strings.TrimSpace(cells[4]), "`", ""),
			})
		}
	}
	return all
}

// TestACLCommands holds the docs' commands against their table.
func TestACLCommands(t *testing.T) {
	var want, got []string
	for _, a := range documentedACLs(t) {
		if !strings.HasPrefix(a.neededBy, "nobody") {
			want = append(want, a.String())
		}
	}
	for line := range strings.Lines(section(t, "What Kafka must allow")) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "acl" {
			continue
		}
		var operations []string
		var a allowance
		for i := 1; i+1 < len(words); i += 2 {
			switch value := words[i+1]; words[i] {
			case "--operation":
				operations = append(operations, value)
			case "--topic", "--group", "--transactional-id":
				a.kind, a.name = strings.ReplaceAll(words[i][2:], "-", " "), value
			case "--resource-pattern-type":
				a.prefixed = value == "prefixed"
			default:
				t.Fatalf("%s: what is %s?", line, words[i])
			}
		}
		for _, a.operation = range operations {
			got = append(got, a.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the commands allow\n%q\nand the table\n%q", got, want)
	}
}

// guard gives a user permissions, and takes them.
type guard struct {
	t     *testing.T
	admin *kadm.Client
	names *strings.Replacer // the docs' names to the test's
}

func (g *guard) acl(a allowance) *kadm.ACLBuilder {
	g.t.Helper()
	b, name := kadm.NewACLs().Allow("User:bob").AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral), g.names.Replace(a.name)
	if a.prefixed {
		b = b.ResourcePatternType(kadm.ACLPatternPrefixed)
	}
	switch a.kind {
	case "topic":
		b = b.Topics(name)
	case "group":
		b = b.Groups(name)
	case "transactional id":
		b = b.TransactionalIDs(name)
	}
	operation, ok := map[string]kadm.ACLOperation{"Read": kadm.OpRead, "Write": kadm.OpWrite, "Create": kadm.OpCreate, "Describe": kadm.OpDescribe, "DescribeConfigs": kadm.OpDescribeConfigs}[a.operation]
	if !ok {
		g.t.Fatalf("no operation %s", a.operation)
	}
	return b.Operations(operation)
}

func (g *guard) allow(a allowance) {
	g.t.Helper()
	made, err := g.admin.CreateACLs(g.t.Context(), g.acl(a))
	for _, m := range made {
		if err == nil {
			err = m.Err
		}
	}
	if err != nil || len(made) != 1 {
		g.t.Fatalf("allowing %s: %v, %d", a, err, len(made))
	}
}

func (g *guard) forbid(a allowance) {
	g.t.Helper()
	gone, err := g.admin.DeleteACLs(g.t.Context(), g.acl(a))
	if err != nil || len(gone) != 1 || len(gone[0].Deleted) != 1 {
		g.t.Fatalf("forbidding %s: %v, %+v", a, err, gone)
	}
}

// TestExactACLs grants what the docs say, and a job runs; takes one away at a
// time, and the start says which is missing.
func TestExactACLs(t *testing.T) {
	t.Parallel()
	const fromGroup = "kafka.FromGroup at its first start"
	broker := guarded(t)
	super := []string{broker.Addr()}
	documented := documentedACLs(t)
	kinds := map[string]bool{}
	for _, a := range documented {
		kinds[a.neededBy] = true
	}
	on := kafka.On(kafka.Connect(kafka.Brokers(broker.AddrOf("SASL")), kafka.ScramSHA256("bob", rightPassword)))
	for _, c := range []struct {
		name          string
		source, sink  bool
		needs, onOnce []string // what is needed at each start, and at the first
		opts          []kafka.SourceOption
		sinkOpts      []kafka.SinkOption
	}{
		{name: "source", source: true, needs: []string{"each source", "each source without kafka.NoGroup"}},
		{name: "source without group", source: true, needs: []string{"each source"}, opts: []kafka.SourceOption{kafka.NoGroup()}},
		{name: "source from a group", source: true, needs: []string{"each source", "each source without kafka.NoGroup"}, onOnce: []string{fromGroup}},
		{name: "sink", sink: true, needs: []string{"each sink"}, onOnce: []string{"a sink at its first start"}},
		{name: "sink that creates", sink: true, needs: []string{"each sink"}, onOnce: []string{"a sink at its first start", "kafka.CreateTopic at its first start"},
			sinkOpts: []kafka.SinkOption{kafka.CreateTopic(1, 1, nil)}},
		{name: "both", source: true, sink: true, needs: []string{"each source", "each source without kafka.NoGroup", "each sink"}, onOnce: []string{"a sink at its first start"}},
		{name: "both without group", source: true, sink: true, needs: []string{"each source", "each sink"}, onOnce: []string{"a sink at its first start"},
			opts: []kafka.SourceOption{kafka.NoGroup()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, folder := services.Unique("spend"), t.TempDir()
			in, out := name+"-orders", name+"-totals"
			g := &guard{t: t, admin: kadm.NewClient(plainClient(t, super)), names: strings.NewReplacer("spend", name, "orders", in, "totals", out, "old", name+"_old")}
			if c.source {
				makeTopic(t, super, in, 1, nil)
			}
			if c.sink && c.sinkOpts == nil {
				makeTopic(t, super, out, 1, nil)
			}
			if slices.Contains(c.onOnce, fromGroup) {
				c.opts = []kafka.SourceOption{kafka.Begin(kafka.FromGroup(name + "_old"))}
				read := kadm.Offsets{}
				read.AddOffset(in, 0, 0, -1)
				if r, err := g.admin.CommitOffsets(t.Context(), name+"_old", read); err != nil || r.Error() != nil {
					t.Fatal(err, r.Error())
				}
			}
			st, fed := store.NewMemory(), int64(0)
			// try runs the job with one more order, and returns how it ended: nil once
			// the order came through.
			try := func(says string) error {
				fed++
				log := &journal{}
				orders := filepath.Join(folder, "orders.jsonl")
				if c.source {
					feedOrders(t, broker.Addr(), in, order{"ann", 1})
				} else {
					f, err := os.OpenFile(orders, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintln(f, `{"User":"ann","Cents":1}`)
					f.Close()
				}
				job := sluice.NewJob(name)
				var stream *sluice.Stream[order]
				if c.source {
					stream = job.From("orders", kafka.Topic(in, codec.JSON[order](), append(c.opts, on)...))
				} else {
					stream = job.From("orders", file.JSONLines[order](orders))
				}
				arrived := func() bool {
					return strings.Contains(written(t, folder), fmt.Sprintf(`"Cents":%d}`, fed))
				}
				if c.sink {
					sums(job, stream).To("totals", kafka.Upsert(out, oneTotal, codec.String(), codec.JSON[total](), append(c.sinkOpts, on)...))
					arrived = func() bool { return totalsIn(t, broker.Addr(), out)["ann"] == fed }
				} else {
					sums(job, stream).Changes().Map(func(change sluice.Change[string, total]) total { return change.New }).
						To("totals", file.Append[total](filepath.Join(folder, "out")))
				}
				err := run(t, job, st, log, func() bool { return arrived() || says != "" && strings.Contains(log.String(), says) })
				if hasSecret(fmt.Sprint(err) + log.String()) {
					t.Errorf("a secret is in %v, or in the log:\n%s", err, log)
				}
				if err == nil && !arrived() {
					t.Fatalf("the start was not refused, and there is no output; it logged:\n%s", log)
				}
				return err
			}
			// brokers learn of permissions a little later
			const tries = 40
			succeeds := func(what string) {
				t.Helper()
				var err error
				for range tries {
					if err = try(""); err == nil {
						return
					}
				}
				t.Fatalf("%s: %v", what, err)
			}
			refuses := func(a allowance) {
				t.Helper()
				says := g.names.Replace(a.says)
				var err error
				for range tries {
					if err = try(says); err != nil && strings.Contains(err.Error(), says) {
						t.Logf("without %s: %v", a, err)
						break
					}
				}
				switch {
				case err == nil || !strings.Contains(err.Error(), says):
					t.Fatalf("without %s: got %v, expected %q in it", a, err, says)
				case !strings.Contains(err.Error(), g.names.Replace(a.name)) || !strings.Contains(err.Error(), "allow "+a.operation+" on "+a.kind):
					t.Errorf("without %s: the error doesn't name it: %v", a, err)
				case exitCode(err) != 1:
					t.Errorf("without %s: exit code %d", a, exitCode(err))
				}
			}
			var always, once []allowance
			for _, a := range documented {
				if slices.Contains(c.needs, a.neededBy) {
					always = append(always, a)
					g.allow(a)
				}
				if slices.Contains(c.onOnce, a.neededBy) {
					once = append(once, a)
				}
			}
			if len(always) == 0 || len(c.onOnce) != len(once) {
				t.Fatalf("the table has %d rows for %q, and %d for %q", len(always), c.needs, len(once), c.onOnce)
			}
			for _, a := range slices.Backward(once) { // the sink's topic is looked for first
				refuses(a)
				g.allow(a)
			}
			succeeds("with all")
			for _, a := range once {
				g.forbid(a)
			}
			for _, a := range always {
				g.forbid(a)
				refuses(a)
				g.allow(a)
			}
			succeeds("with all again")
		})
		for _, kind := range slices.Concat(c.needs, c.onOnce) {
			delete(kinds, kind)
		}
	}
	delete(kinds, "nobody, but see below") // no case has these, and all of them run
	if len(kinds) > 0 {
		t.Errorf("rows of the table that nothing tries: %v", kinds)
	}
}

// written is what stands in the files of the output in a folder.
func written(t *testing.T, folder string) (all string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "out", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(content)
	}
	return all
}
