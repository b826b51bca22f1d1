package epoch

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// upgrader plays a process that runs another build beside the live one.
type upgrader struct {
	*process
	begun Begun
	owner *Owner
	feed  *Follower
	sinks []string
}

// newUpgrader is a process of its own, of a build that its name tells.
func newUpgrader(t testing.TB, s store.Store, number int, exe string) *upgrader {
	p := newProcess(t, s, number)
	p.me.Build.Executable = exe
	return &upgrader{process: p, sinks: []string{"out"}}
}

// build is the build with its version.
func (u *upgrader) build() Build {
	b := u.me.Build
	b.Version, _ = testVersion().Hash()
	return b
}

// begin is U1 to U4.
func (u *upgrader) begin(ctx context.Context, b Beginning) error {
	begun, err := u.job.BeginBranch(ctx, b, u.me)
	if err != nil {
		return err
	}
	u.begun, u.owner = begun, nil
	return u.base(ctx)
}

// base makes the base, or takes over the branch that has one.
func (u *upgrader) base(ctx context.Context) error {
	branch := u.begun.File.Branch
	if from, lacks := u.begun.From[FirstTask]; lacks {
		o, err := u.job.BeginBase(ctx, branch, FirstTask, u.me)
		if err != nil {
			return err
		}
		_, err = o.PutBase(ctx, BaseOf(from, u.build(), u.begun.File.Branch, u.begun.File.Starts))
		if fenced := (*FencedError)(nil); err != nil && !errors.As(err, &fenced) {
			return err
		}
		if err == nil {
			u.owner = o
		}
	}
	if err := u.job.UnpinBranch(ctx, branch); err != nil {
		return err
	}
	if u.owner == nil {
		o, err := u.job.Take(ctx, branch, FirstTask, u.me)
		if err != nil {
			return err
		}
		u.owner = o
	}
	u.feed = u.job.Follow(branch, FirstTask)
	return nil
}

// follow is one step of U5.
func (u *upgrader) follow(ctx context.Context, most int) (FollowStep, error) {
	head, _ := u.owner.Head()
	next, err := u.feed.Next(ctx, head, most)
	if err != nil || next.Step != Cover {
		return next.Step, err
	}
	m := Following(head, next.Covered)
	for _, c := range next.Covered {
		m.Runs = append(m.Runs, c.Runs...)
		m.Sources = c.Sources
	}
	_, err = u.owner.Commit(ctx, m)
	return Cover, err
}

// catchUp follows as long as there is something to cover.
func (u *upgrader) catchUp(ctx context.Context) (FollowStep, error) {
	for {
		if step, err := u.follow(ctx, 3); err != nil || step != Cover {
			return step, err
		}
	}
}

// cut is U6 to U8.
func (u *upgrader) cut(ctx context.Context, c Cutting) (CutStep, error) {
	c.Sinks = u.sinks
	for {
		step, record, err := u.owner.GoLive(ctx, c)
		if err != nil || step == IsLive || step == CutTooLate {
			return step, err
		}
		if step == SealFirst {
			if _, err := u.job.SealBranch(ctx, record.Branch, u.me.Writer, "an upgrade"); err != nil {
				return step, err
			}
		}
		if after, err := u.catchUp(ctx); err != nil || after == AwaitEpoch {
			return step, err // another's branch is live: it follows that
		}
	}
}

// upgrade goes live with a new branch.
func (u *upgrader) upgrade(t testing.TB, b Beginning) {
	t.Helper()
	if err := u.begin(t.Context(), b); err != nil {
		t.Fatalf("%s begins: %v", u.name, err)
	}
	step, err := u.cut(t.Context(), Cutting{Kind: b.Kind})
	if err != nil || step != IsLive {
		t.Fatalf("%s cuts over: step %d, %v", u.name, step, err)
	}
}

// withSink is work that has a sink, as the log knows it.
func withSink(o *Owner, next int64) Manifest {
	m := work(o, next)
	if m.Sinks["out"].Record == "" {
		m.Sinks = map[string]SinkState{"out": {Record: "made"}}
	}
	return m
}

// input commits epochs that read a record each.
func input(t testing.TB, o *Owner, records int) {
	t.Helper()
	for range records {
		head, _ := o.Head()
		if _, err := o.Commit(t.Context(), withSink(o, nextOf(head)+1)); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
}

// checkChain holds all that was live against the rules: each position is one
// generation's data epoch, which reads the record of that number. It returns those
// epochs by position.
func checkChain(j *Job) (map[Position]Manifest, error) {
	ctx := context.Background()
	chain, err := j.Chain(ctx, FirstTask)
	if err != nil {
		return nil, err
	}
	at := map[Position]Manifest{}
	for _, link := range chain {
		if link.Ended() && link.Hash == "" {
			continue
		}
		for m, err := range j.Manifests(ctx, link.Branch, FirstTask, 0, AllEpochs) {
			if err != nil {
				return nil, err
			}
			if m.Kind != Data || m.Live == nil {
				continue
			}
			if *m.Live != link.Live || m.Position <= link.From || m.Position > link.To {
				return nil, errors.New(At{"", m.Branch, m.Task, m.Epoch}.String() + " is live outside of its generation")
			}
			if other, twice := at[m.Position]; twice {
				return nil, errors.New(At{"", m.Branch, m.Task, m.Epoch}.String() + " has the position of branch " + other.Branch)
			}
			if nextOf(m) != int64(m.Position) {
				return nil, errors.New(At{"", m.Branch, m.Task, m.Epoch}.String() + " reads a record out of its turn")
			}
			at[m.Position] = m
		}
	}
	return at, nil
}

// onName is a plan with a fault at the n-th create of a name, below the job's folder.
func onName(path func(string) bool, n int, fault faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	seen := 0
	return func(c faultstore.Call) faultstore.Fault {
		if c.Operation != "create" || !path(c.Name[len("spend/"):]) {
			return faultstore.None
		}
		if seen++; seen != n {
			return faultstore.None
		}
		return fault
	}
}
