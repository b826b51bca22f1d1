package cli_test

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/upgrade/upgradetest"
	"github.com/sluicestream/sluice/internal/vitals"
	"github.com/sluicestream/sluice/store"
)

// history is a job with branches that a script makes, if it makes one.
type history struct{ world *upgradetest.World }

type worldKey struct{}

// branches takes a step of a job with several branches, which this process runs; where a
// branch begins, the environment gets its name under the one that is given:
//
//	branches live EPOCHS
//	branches begin NAME [rollback BRANCH EPOCH]
//	branches record NAME (begins it without a base)
//	branches cover BRANCH STEPS MOST WRONG
//	branches cut BRANCH
//	branches beat BRANCH RATE|released [OBJECTION...]
//	branches clean KEEP
//	branches await REQUEST (waits until it was made)
func branches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: branches STEP ARGUMENT...")
	}
	h := ts.Value(worldKey{}).(*history)
	if h.world == nil {
		e := env.Real()
		st, err := store.OpenFolder(e, filepath.Join(ts.Getenv("WORK"), "sluice-data"))
		ts.Check(err)
		h.world = upgradetest.New(ts, e, st)
	}
	number := func(i int) int {
		n, err := strconv.Atoi(args[i])
		ts.Check(err)
		return n
	}
	switch w := h.world; args[0] {
	case "live":
		w.Live(number(1))
	case "begin":
		if len(args) == 2 {
			ts.Setenv(args[1], w.Begin(args[1], epoch.Upgrade, nil))
			return
		}
		at := epoch.Point{Branch: args[3], Tasks: map[string]epoch.Epoch{epoch.FirstTask: epoch.Epoch(number(4))}}
		ts.Setenv(args[1], w.Begin(args[1], epoch.BranchKind(args[2]), &at))
	case "record":
		ts.Setenv(args[1], w.Record(args[1], epoch.Upgrade, nil))
	case "await":
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a bound, if it never comes
		defer cancel()
		for {
			if newest, err := w.Job().NewestRequest(ctx, 0); err != nil || newest >= uint64(number(1)) {
				ts.Check(err)
				return
			}
			ts.Check(env.Pause(ctx, env.Real().Clock, 10*time.Millisecond))
		}
	case "cover":
		w.Cover(args[1], number(2), number(3), int64(number(4)))
	case "cut":
		w.Cut(args[1], epoch.Upgrade)
	case "beat":
		role := vitals.Follower
		if args[1] == epoch.MainBranch {
			role = vitals.Running
		}
		beat := epoch.Heartbeat{Role: string(role), Lease: 10e6, Keep: 600e6, KeepEpochs: 100, Objections: args[3:]}
		if beat.Released = args[2] == "released"; !beat.Released {
			beat.RecordsPerSecond = int64(number(2))
		}
		w.Beat(args[1], beat)
	case "clean":
		w.Clean(number(1))
	default:
		ts.Fatalf("there is no step %s", args[0])
	}
}
