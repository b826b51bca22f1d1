package sluice_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/sluicetest"
)

// command is what the job of the random histories is told to do with a state.
type command struct {
	Key     string
	Op      string
	Element int64
	N       int64
}

type answer struct {
	Key    string
	Answer string
}

type cell struct{ N int64 }

var (
	cells    = sluice.NewState[string, cell]("cells")
	elements = sluice.NewMapState[string, int64, cell]("elements")
	lists    = sluice.NewListState[string, cell]("lists")
)

func commandsJob(dir string) *sluice.Job {
	job := sluice.NewJob("commands")
	answers := job.From("commands", file.JSONLines[command]("unused.jsonl")).
		KeyBy(func(c command) string { return c.Key }).
		Process(func(p *sluice.Setup[string, answer]) func(*sluice.Context[string, answer], command) {
			value, many, list := p.State(cells), p.Map(elements), p.List(lists)
			return func(c *sluice.Context[string, answer], cmd command) {
				switch cmd.Op {
				case "set":
					value.Set(cell{cmd.N})
				case "add":
					value.Update().N += cmd.N
				case "delete":
					value.Delete()
				case "put":
					many.Set(cmd.Element, cell{cmd.N})
				case "increase":
					many.Update(cmd.Element).N += cmd.N
				case "remove":
					many.Delete(cmd.Element)
				case "clear":
					many.Clear()
				case "append":
					list.Append(cell{cmd.N})
				case "replace":
					if list.Len() > 0 {
						list.Set(int(cmd.Element)%list.Len(), cell{cmd.N})
					}
				case "shift":
					list.RemoveFirst(int(cmd.N % 4))
				case "tell":
					var b strings.Builder
					v, ok := value.Read()
					fmt.Fprintf(&b, "%d %t %d:", v.N, ok, many.Len())
					for e, v := range many.All() {
						fmt.Fprintf(&b, " %d=%d", e, v.N)
					}
					fmt.Fprintf(&b, " %d:", list.Len())
					for _, v := range list.All() {
						fmt.Fprintf(&b, " %d", v.N)
					}
					c.Emit(answer{c.Key(), b.String()})
				}
			}
		})
	answers.To("answers", file.Append[answer](dir+"/answers"))
	answers.Table(cells).To("cells", file.Upsert(dir+"/cells", func(_ string, c cell) cell { return c }))
	return job
}

// model does what the job is told with plain maps and slices.
type model struct {
	values map[string]int64
	many   map[string]map[int64]int64
	lists  map[string][]int64
}

func (m *model) apply(c command) (string, bool) {
	switch c.Op {
	case "set":
		m.values[c.Key] = c.N
	case "add":
		m.values[c.Key] += c.N
	case "delete":
		delete(m.values, c.Key)
	case "put", "increase":
		if m.many[c.Key] == nil {
			m.many[c.Key] = map[int64]int64{}
		}
		if c.Op == "put" {
			m.many[c.Key][c.Element] = 0
		}
		m.many[c.Key][c.Element] += c.N
	case "remove":
		delete(m.many[c.Key], c.Element)
	case "clear":
		delete(m.many, c.Key)
	case "append":
		m.lists[c.Key] = append(m.lists[c.Key], c.N)
	case "replace":
		if l := m.lists[c.Key]; len(l) > 0 {
			l[int(c.Element)%len(l)] = c.N
		}
	case "shift":
		m.lists[c.Key] = m.lists[c.Key][min(int(c.N%4), len(m.lists[c.Key])):]
	case "tell":
		v, ok := m.values[c.Key]
		text := fmt.Sprintf("%d %t %d:", v, ok, len(m.many[c.Key]))
		for _, e := range slices.Sorted(maps.Keys(m.many[c.Key])) {
			text += fmt.Sprintf(" %d=%d", e, m.many[c.Key][e])
		}
		text += fmt.Sprintf(" %d:", len(m.lists[c.Key]))
		for _, n := range m.lists[c.Key] {
			text += fmt.Sprintf(" %d", n)
		}
		return text, true
	}
	return "", false
}

// stepAnyhow steps a job with some number of shards, workers and records in a batch, and
// perhaps crashes it before.
func stepAnyhow(rt *rapid.T, test *sluicetest.Test) {
	test.Options(func(o *sluice.Options) {
		o.Shards = rapid.IntRange(1, 5).Draw(rt, "shards")
		o.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		o.BatchRecords = rapid.IntRange(1, 20).Draw(rt, "batch")
		o.EpochBytes = 1 << 30
	})
	if rapid.Bool().Draw(rt, "crash") {
		test.Crash(rapid.IntRange(1, 12).Draw(rt, "at"))
	}
	test.Step()
}

// Random commands, epochs, crashes and numbers of shards: all that the states
// tell is what a model tells that never crashes.
func TestRandomHistoriesAgreeWithAModel(t *testing.T) {
	t.Parallel()
	commands := rapid.Custom(func(t *rapid.T) command {
		return command{
			Key: fmt.Sprint("key-", rapid.IntRange(0, 5).Draw(t, "key")),
			Op: rapid.SampledFrom([]string{
				"set", "add", "delete", "put", "put", "increase", "remove", "clear", "append", "append", "replace", "shift", "tell", "tell",
			}).Draw(t, "op"),
			Element: rapid.Int64Range(0, 6).Draw(t, "element"),
			N:       rapid.Int64Range(0, 99).Draw(t, "n"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		test := sluicetest.New(t, commandsJob("unused"))
		m := model{map[string]int64{}, map[string]map[int64]int64{}, map[string][]int64{}}
		var want []answer
		for range rapid.IntRange(1, 3).Draw(rt, "epochs") {
			for _, c := range rapid.SliceOfN(commands, 1, 40).Draw(rt, "commands") {
				sluicetest.Feed(test, "commands", c)
				if text, ok := m.apply(c); ok {
					want = append(want, answer{c.Key, text})
				}
			}
			stepAnyhow(rt, test)
		}
		if got := sluicetest.Rows[answer](test, "answers"); !slices.Equal(got, want) {
			rt.Fatalf("the job told\n%v\nthe model tells\n%v", got, want)
		}
		values := map[string]cell{}
		for k, v := range m.values {
			values[k] = cell{v}
		}
		if got := sluicetest.Table[string, cell](test, "cells"); !maps.Equal(got, values) {
			rt.Fatalf("the table is %v, the model's %v", got, values)
		}
		test.Replay(nil)
	})
}

// A list that is emptied and filled again within an epoch begins anew at its
// first place; a restart must not see the places behind it.
func TestAListThatBeginsAnewIsRestored(t *testing.T) {
	test := sluicetest.New(t, commandsJob("unused"))
	tell := func(op string, n int64) { sluicetest.Feed(test, "commands", command{Key: "k", Op: op, N: n}) }
	for n := range int64(3) {
		tell("append", n)
	}
	test.Step()
	tell("shift", 3)
	tell("append", 7)
	test.Step()
	tell("tell", 0)
	test.Step()
	if got := sluicetest.Rows[answer](test, "answers"); len(got) != 1 || got[0].Answer != "0 false 0: 1: 7" {
		t.Errorf("the restored list tells %v, want one value, 7", got)
	}
}
