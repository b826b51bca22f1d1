package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// takeoverLease is the lease of the owner and of the standby.
func takeoverLease(s setting) time.Duration {
	if s.Quick {
		return 2 * time.Second
	}
	return 10 * time.Second
}

// What the children of this figure say on the way.
const (
	saysRuns   = "runs"
	saysStands = "stands by"
	saysLeads  = "leads"
)

// trickle is a job to which a few records come every tenth of a second, so that
// it commits about once a second.
func trickle(ctx context.Context, opened func() error) *sluice.Job {
	gate := make(chan int64)
	go func() {
		for n := int64(10); ; n += 10 {
			select {
			case gate <- n:
			case <-ctx.Done():
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	source := numbers[payment]{count: 1 << 50, partitions: 1, value: []byte("x"), gate: gate, opened: opened, decoder: func() func(*connector.Batch, int, *payment) error {
		return func(b *connector.Batch, i int, v *payment) error {
			*v = payment{"ann", b.Records[i].Offset & 1023}
			return nil
		}
	}}
	job := sluice.NewJob("trickle")
	job.From("payments", source).KeyBy(payment.user).Fold(sluice.NewState[string, spend]("spend"), (*spend).add)
	return job
}

func trickleStore(t task) (*store.Folder, error) {
	return store.OpenFolder(env.Real(), filepath.Join(t.Dir, "takeover"))
}

// ownTrickle runs the job until it is killed, and says when it has committed.
func ownTrickle(t task) (sample, error) {
	st, err := trickleStore(t)
	if err != nil {
		return nil, err
	}
	said := false
	o := sluice.Options{Store: st, Log: quiet(), Lease: takeoverLease(t.setting), Committed: func(sluice.Committed) {
		if !said {
			said = true
			fmt.Println(saysRuns)
		}
	}}
	return nil, trickle(context.Background(), nil).Run(context.Background(), o)
}

// nextTrickle starts the job, which may have an owner, and measures the time from
// the start of the process to the opening. Once it could read it stops.
func nextTrickle(t task) (sample, error) {
	folder, err := trickleStore(t)
	if err != nil {
		return nil, err
	}
	st := &firstManifest{Store: folder}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := sluice.Options{Store: st, Log: slog.New(telling{slog.DiscardHandler, map[string]string{"standing by": saysStands}}), Lease: takeoverLease(t.setting)}
	if err := trickle(ctx, func() error { stop(); return nil }).Run(ctx, o); err != nil {
		return nil, err
	}
	if st.at.IsZero() {
		return nil, errors.New("the job was not taken over")
	}
	return sample{wallSeconds: st.at.Sub(time.Unix(0, t.Started)).Seconds()}, nil
}

// telling is a log that tells this process's parent something when a message begins in
// some way.
type telling struct {
	slog.Handler
	says map[string]string // by how the message begins
}

func (telling) Enabled(context.Context, slog.Level) bool { return true }
func (h telling) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h telling) WithGroup(string) slog.Handler          { return h }
func (h telling) Handle(_ context.Context, r slog.Record) error {
	for begins, says := range h.says {
		if strings.HasPrefix(r.Message, begins) {
			fmt.Println(says)
		}
	}
	return nil
}

// talking is a child that says things before it ends.
type talking struct {
	cmd     *exec.Cmd
	out     *bufio.Scanner
	said    bytes.Buffer // to standard error
	started time.Time
}

// talk starts a child, in a pid namespace of its own if it is to pass for one of
// another machine.
func (b *bench) talk(name string, elsewhere bool) (*talking, error) {
	return b.talkAbout(task{setting: b.setting, Name: name}, elsewhere)
}

func (b *bench) talkAbout(t task, elsewhere bool) (*talking, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &talking{started: time.Now()}
	t.Started = c.started.UnixNano()
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(program, childArgument, string(text))
	c.cmd.Stderr = &c.said
	if elsewhere {
		c.cmd.SysProcAttr = ownNamespace()
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	return c, nil
}

// ownNamespace is a pid namespace of the child's own; who isn't root needs one of
// users besides.
func ownNamespace() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
}

// says waits until the child says something.
func (c *talking) says(what string) error {
	_, err := c.tells(what)
	return err
}

// tells waits until the child says something, and returns what it says behind that.
func (c *talking) tells(what string) (rest string, err error) {
	for c.out.Scan() {
		if rest, ok := strings.CutPrefix(c.out.Text(), what); ok {
			return rest, nil
		}
	}
	return "", fmt.Errorf("a child has ended without saying %q: %s", what, &c.said)
}

// sample waits for the child's end, and for what it has measured.
func (c *talking) sample() (s sample, err error) {
	for c.out.Scan() {
		if err := json.Unmarshal(c.out.Bytes(), &s); err != nil {
			return nil, err
		}
	}
	if err := c.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, &c.said)
	}
	return s, nil
}

// takeOver kills an owner, and returns the seconds from then to the opening of a
// process that stood by.
func (b *bench) takeOver(elsewhere bool) (float64, error) {
	owner, err := b.talk("takeover.own", elsewhere)
	if err != nil {
		return 0, err
	}
	defer owner.cmd.Wait()
	defer owner.cmd.Process.Kill()
	if err := owner.says(saysRuns); err != nil {
		return 0, err
	}
	next, err := b.talk("takeover.next", false)
	if err != nil {
		return 0, err
	}
	if err := next.says(saysStands); err != nil {
		return 0, err
	}
	time.Sleep(takeoverLease(b.setting) / 4) // it has seen a few epochs
	killed := time.Now()
	if err := owner.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	s, err := next.sample()
	return s[wallSeconds] - killed.Sub(next.started).Seconds(), err
}

// median measures something some times.
func median(times int, measure func() (float64, error)) (middle float64, all []float64, err error) {
	for range times {
		v, err := measure()
		if err != nil {
			return 0, nil, err
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all[len(all)/2], all, nil
}

func measureTakeover(b *bench) ([]Result, error) {
	defer os.RemoveAll(filepath.Join(b.setting.Dir, "takeover"))
	times := 3
	if b.setting.Quick {
		times = 1
	}
	gone, allGone, err := median(times, func() (float64, error) { return b.takeOver(false) })
	if err != nil {
		return nil, err
	}
	start, _, err := median(times, func() (float64, error) {
		s, err := b.child("takeover.next", "")
		return s[wallSeconds], err
	})
	if err != nil {
		return nil, err
	}
	other, allOther, err := median(times, func() (float64, error) { return b.takeOver(true) })
	if err != nil {
		return nil, err
	}
	lease := takeoverLease(b.setting).Seconds()
	r := Result{
		Name: "takeover", Value: other * 1e3, Unit: "ms",
		What: fmt.Sprintf("an owner that commits every second killed, to the standby's opening: the owner is another machine's, so that its lease of %g s must pass (median of %d); floor: the lease", lease, times),
		Why:  "the standby measures the lease from the look at which it saw the last change, so that up to half a second comes before it; what has passed since that change when the owner is killed goes off",
	}.against(lease * 1e3).within(lease*1e3 + 1.5*start*1e3)
	r.note("all: %s ms; a start without an owner takes %.1f ms from the start of the process to its opening", inMilliseconds(allOther), start*1e3)
	g := Result{
		Name: "takeover.gone", Value: gone * 1e3, Unit: "ms",
		What: fmt.Sprintf("the same, the owner being a process of the same machine, which is known to be gone (median of %d); floor: the start's own time", times),
	}.against(start * 1e3).atMost(1.5)
	g.note("all: %s ms", inMilliseconds(allGone))
	return []Result{r, g}, nil
}

func inMilliseconds(seconds []float64) string {
	var all []string
	for _, s := range seconds {
		all = append(all, fmt.Sprintf("%.0f", s*1e3))
	}
	return strings.Join(all, ", ")
}
