package sluice_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/store"
)

// holding is a sink that delivers nothing: its process is gone before.
type holding struct{ connector.Sink }

type heldTarget struct{ connector.Target }

func (h holding) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	t, err := h.Sink.Open(ctx, o, key)
	return heldTarget{t}, err
}

func (heldTarget) Deliver(ctx context.Context, _ *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	<-ctx.Done()
	return connector.Disagree, nil, ctx.Err()
}

// TestOneBuildFinishesWhatAnotherHasFrozen: what build A has committed and not
// delivered is delivered by build B, whose rows lack a column, by consent, as A
// froze it.
func TestOneBuildFinishesWhatAnotherHasFrozen(t *testing.T) {
	type wide struct {
		User   string
		Cents  int64
		Coupon *string
	}
	type narrow struct {
		User  string
		Cents int64
	}
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.jsonl"), filepath.Join(folder, "out")
	write := func(lines string) {
		t.Helper()
		if err := os.WriteFile(in, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := `{"User":"ann","Cents":5,"Coupon":"spring"}` + "\n" + `{"User":"bob","Cents":7,"Coupon":""}` + "\n"
	write(first)
	st := store.NewMemory()
	o := sluice.Options{Store: st, Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond}

	a := sluice.NewJob("coupons")
	a.From("orders", file.JSONLines[wide](in, file.Follow())).To("out", file.Append[wide](out))
	sink := a.Sinks()[0].Sink
	if err := a.ReplaceSink("out", holding{sink}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o.Committed = func(sluice.Committed) { stop() }
	var pending *sluice.PendingError
	if err := a.Run(ctx, o); !errors.As(err, &pending) || pending.Pending["out"] != 1 {
		t.Fatalf("build A has ended with %v, want a delivery pending", err)
	}
	o.Committed = nil

	write(first + `{"User":"eve","Cents":9,"Coupon":"spring"}` + "\n")
	b := sluice.NewJob("coupons")
	b.From("orders", file.JSONLines[narrow](in)).To("out", file.Append[narrow](out))
	o.Grace, o.Drop = time.Minute, []string{"out.Coupon"}
	if err := b.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var got []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(string(data)))
	}
	if want := []string{strings.TrimSpace(first), `{"User":"eve","Cents":9}`}; !slices.Equal(got, want) {
		t.Errorf("the sink has\n%q, want\n%q", got, want)
	}
}
