package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/kafka/embedded"
)

// childVariable has the test binary run a broker in the folder that it names,
// print its address, and wait.
const childVariable = "SLUICE_EMBEDDED_CHILD"

func child() {
	b, err := embedded.Start(embedded.Options{
		Folder: os.Getenv(childVariable),
		Topics: []embedded.Topic{{Name: "kept", Partitions: 2}, {Name: "open"}},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	io.ReadAll(os.Stdin) // which never ends
	os.Exit(0)
}

// startChild runs a broker in a process of its own.
func startChild(t *testing.T, folder string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+folder)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
		stdin.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "127.0.0.1:") {
		t.Fatalf("the broker says %q, %v", line, err)
	}
	return strings.TrimSpace(line), kill
}

// TestKilledBrokerKeepsWhatItAcknowledged kills a broker while it is written to.
func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	folder := t.TempDir()
	for round := range 3 {
		addr, kill := startChild(t, folder)
		admin := kadm.NewClient(clientAt(t, addr))
		offsets := kadm.Offsets{}
		offsets.AddOffset("kept", 1, int64(100+round), -1)
		must(t, admin.CommitAllOffsets(bounded(t), "group", offsets))
		ctx, cancel := context.WithCancel(t.Context())
		c := clientAt(t, addr, kgo.RecordPartitioner(kgo.UniformBytesPartitioner(64<<10, false, false, nil)))
		acknowledged := make(chan string, 1<<16)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := 0; ctx.Err() == nil && i < cap(acknowledged); i++ {
				value := fmt.Sprintf("%d-%d", round, i)
				c.Produce(ctx, &kgo.Record{Topic: "kept", Value: []byte(value)}, func(_ *kgo.Record, err error) {
					if err == nil {
						acknowledged <- value
					}
				})
			}
		}()
		var confirmed []string
		for len(confirmed) < 2000 {
			select {
			case v := <-acknowledged:
				confirmed = append(confirmed, v)
			case <-time.After(patience):
				t.Fatal("the broker acknowledges nothing")
			}
		}
		kill()
		cancel()
		<-written
		c.Close()
		close(acknowledged)
		for v := range acknowledged {
			confirmed = append(confirmed, v)
		}

		b, err := embedded.Start(embedded.Options{Folder: folder})
		must(t, err)
		if !b.Recovered() {
			t.Error("the broker doesn't know that it was killed")
		}
		held := strings.Fields(contents(t, b, "kept"))
		slices.Sort(held)
		if len(slices.Compact(slices.Clone(held))) != len(held) {
			t.Error("a record stands there twice")
		}
		for _, v := range confirmed {
			if _, found := slices.BinarySearch(held, v); !found {
				t.Fatalf("round %d: record %s of %d was acknowledged, and is lost", round, v, len(confirmed))
			}
		}
		t.Logf("round %d: %d acknowledged, %d in all rounds are there", round, len(confirmed), len(held))
		group, err := kadm.NewClient(client(t, b)).FetchOffsets(bounded(t), "group")
		must(t, err)
		if at, _ := group.Lookup("kept", 1); at.At != int64(100+round) {
			t.Errorf("the group stands at %d", at.At)
		}
		must(t, b.Close())
	}
}

func TestKillAbortsOpenTransactions(t *testing.T) {
	folder := t.TempDir()
	addr, kill := startChild(t, folder)
	c := clientAt(t, addr, kgo.TransactionalID("job"))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(bounded(t), &kgo.Record{Topic: "open", Value: []byte("committed")}).FirstErr())
	must(t, c.EndTransaction(bounded(t), kgo.TryCommit))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(bounded(t), &kgo.Record{Topic: "open", Value: []byte("open")}).FirstErr())
	kill()
	b := start(t, embedded.Options{Folder: folder})
	again := client(t, b, kgo.TransactionalID("job"))
	must(t, again.BeginTransaction())
	must(t, again.ProduceSync(bounded(t), &kgo.Record{Topic: "open", Value: []byte("again")}).FirstErr())
	must(t, again.EndTransaction(bounded(t), kgo.TryCommit))
	if got := contents(t, b, "open"); got != "committed again" {
		t.Errorf("it holds %q", got)
	}
}

// TestKillInTheMiddleOfACommit kills a broker while it ends a transaction of many
// partitions. Whenever that is, the next one has it in all of them or in none.
func TestKillInTheMiddleOfACommit(t *testing.T) {
	const partitions = 100
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	outcomes := map[int]int{}
	for range 6 {
		folder := t.TempDir()
		addr, kill := startChild(t, folder)
		admin := clientAt(t, addr)
		_, err := kadm.NewClient(admin).CreateTopic(bounded(t), partitions, 1, nil, "many")
		must(t, err)
		c := clientAt(t, addr, kgo.TransactionalID("job"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		must(t, c.BeginTransaction())
		for p := range int32(partitions) {
			c.Produce(t.Context(), &kgo.Record{Topic: "many", Partition: p, Value: fmt.Append(nil, p)}, nil)
		}
		must(t, c.Flush(bounded(t)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.EndTransaction(ctx, kgo.TryCommit) }()
		select {
		case <-time.After(time.Duration(random.IntN(3000)) * time.Microsecond):
		case err := <-ended:
			ended <- err
		}
		kill()
		cancel()
		acknowledged := <-ended == nil
		c.Close()
		admin.Close()
		b, err := embedded.Start(embedded.Options{Folder: folder})
		must(t, err)
		n := len(strings.Fields(contents(t, b, "many")))
		outcomes[n]++
		if n != 0 && n != partitions || acknowledged && n == 0 {
			t.Errorf("%d of %d partitions have the transaction, whose end was acknowledged: %v", n, partitions, acknowledged)
		}
		must(t, b.Close())
	}
	t.Logf("runs by partitions committed: %v", outcomes)
}

// TestCloseKeepsOpenTransactions closes a broker in the middle of one: it is open
// afterwards, and the next producer of its name aborts it.
func TestCloseKeepsOpenTransactions(t *testing.T) {
	folder := t.TempDir()
	options := embedded.Options{Folder: folder, Topics: []embedded.Topic{{Name: "open"}}}
	b, err := embedded.Start(options)
	must(t, err)
	c := client(t, b, kgo.TransactionalID("job"))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(bounded(t), &kgo.Record{Topic: "open", Value: []byte("open")}).FirstErr())
	must(t, b.Close())
	b = start(t, options)
	write(t, client(t, b), "open", "after")
	if got := contents(t, b, "open"); got != "" {
		t.Errorf("behind an open transaction %q is seen", got)
	}
	again := client(t, b, kgo.TransactionalID("job"))
	must(t, again.BeginTransaction())
	must(t, again.ProduceSync(bounded(t), &kgo.Record{Topic: "open", Value: []byte("again")}).FirstErr())
	must(t, again.EndTransaction(bounded(t), kgo.TryCommit))
	if got := contents(t, b, "open"); got != "after again" {
		t.Errorf("it holds %q", got)
	}
}

// TestCloseKeepsEverything closes and opens a broker, with fewer brokers too.
func TestCloseKeepsEverything(t *testing.T) {
	for _, sync := range []bool{false, true} {
		folder := t.TempDir()
		var ids, held []string
		for round, brokers := range []int{3, 3, 1} {
			b, err := embedded.Start(embedded.Options{
				Folder: folder, Brokers: brokers, Sync: sync,
				Topics: []embedded.Topic{{Name: "kept", Partitions: 4, Settings: map[string]string{"cleanup.policy": "compact"}}},
			})
			must(t, err)
			if b.Recovered() {
				t.Error("the broker takes a clean end for a kill")
			}
			c := client(t, b)
			write(t, c, "kept", fmt.Sprint("a", round), fmt.Sprint("b", round))
			held = append(held, fmt.Sprint("a", round), fmt.Sprint("b", round))
			slices.Sort(held)
			got := strings.Fields(contents(t, b, "kept"))
			slices.Sort(got)
			if !slices.Equal(got, held) {
				t.Errorf("round %d: it holds %q", round, got)
			}
			admin := kadm.NewClient(c)
			topics, err := admin.ListTopics(bounded(t))
			must(t, err)
			ids = append(ids, topics["kept"].ID.String())
			configs, err := admin.DescribeTopicConfigs(bounded(t), "kept")
			must(t, err)
			text, err := json.Marshal(configs)
			must(t, err)
			if !strings.Contains(string(text), `"compact"`) {
				t.Errorf("round %d: the setting is lost: %s", round, text)
			}
			c.Close()
			must(t, b.Close())
		}
		if len(slices.Compact(ids)) != 1 {
			t.Errorf("the topic's id changes: %v", ids)
		}
	}
}

// TestNothingToKeepItIn takes the data folder away.
func TestNothingToKeepItIn(t *testing.T) {
	folder := t.TempDir()
	b, err := embedded.Start(embedded.Options{Folder: folder, Topics: []embedded.Topic{{Name: "x"}}})
	must(t, err)
	write(t, client(t, b), "x", "1")
	must(t, os.RemoveAll(folder+"/data"))
	must(t, os.WriteFile(folder+"/data", nil, 0o644)) // where a folder is to be
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "not all could be kept") {
		t.Errorf("got %v", err)
	}
}
