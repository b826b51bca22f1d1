package main

import (
	"encoding/json/v2"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

// childArgument is the first argument of a process that measures one thing; the
// second is a task as JSON.
const childArgument = "child"

// setting is what all processes of a run have in common.
type setting struct {
	Dir     string
	Quick   bool
	Profile string
	// Kafka and Postgres are the addresses of the servers, where a figure has such.
	Kafka, Postgres string
}

// scale is n, or a twentieth of it in a quick run.
func (s setting) scale(n int) int {
	if s.Quick {
		return n / 20
	}
	return n
}

// task is what a process is to measure.
type task struct {
	setting
	Name string
	// Variant tells tasks of one name apart, as the task itself has it.
	Variant string
	// Live is the job of a task of a live job's, Load what is written to it.
	Live live
	Load load
	// Started is when the process was started, in nanoseconds since 1970 UTC.
	Started int64
}

// sample is what a process has measured, by what it is. Times are in seconds.
type sample map[string]float64

// cpuSeconds and its like are the names in a sample that many tasks share.
const (
	cpuSeconds  = "cpu"
	wallSeconds = "wall"
	processCPU  = "process cpu"
)

// gcPercent is the garbage collector's target that a job has by default
// (see the command run); the floors get the same.
const gcPercent = 400

// taskNamed returns what measures a task.
func taskNamed(name string) func(task) (sample, error) {
	switch name {
	case "fold":
		return foldJob
	case "fold.floor":
		return foldFloor
	case "window":
		return windowJob
	case "window.floor":
		return windowFloor
	case "timers":
		return timersJob
	case "nexmark":
		return nexmarkJob
	case "nexmark.floor":
		return nexmarkFloor
	case "file":
		return fileJob
	case "file.floor":
		return fileFloor
	case "encode":
		return encodeTable
	case "encode.floor":
		return encodeFloor
	case "stall":
		return stallJob
	case "restore.write":
		return restoreWrite
	case "restore":
		return restoreJob
	case "restore.floor":
		return restoreFloor
	case "parcels.write":
		return writeParcels
	case "plan.sample":
		return planParcels
	case "parcels.migrate":
		return migrateParcels
	case "carried.write":
		return carriedWrite
	case "resolve":
		return readResolved
	case "resolve.floor":
		return readUnchanged
	case "migrate":
		return migrateState
	case "migrate.floor":
		return migrateFloor
	case "amplification":
		return amplify
	case "start":
		return startJob
	case "farm":
		return makeFarm
	case "farm.start":
		return farmStart
	case "farm.run":
		return farmRun
	case "clean":
		return cleanFarm
	case "export":
		return exportOnce
	case "export.copy":
		return exportCopy
	case "export.job":
		return exportJob
	case "export.rate":
		return exportRate
	case "export.spread":
		return exportSpread
	case "stalled":
		return stalledJob
	case "takeover.own":
		return ownTrickle
	case "takeover.next":
		return nextTrickle
	case "kafka.count":
		return kafkaJob
	case "kafka.count.floor":
		return kafkaFloor
	case "kafka.live":
		return liveJob
	case "kafka.again":
		return readAgain
	case "kafka.load":
		return putLoad
	case "kafka.restart":
		return restartLive
	case "kafka.restart.floor":
		return loadLive
	case "kafka.upgrade":
		return upgradeLive
	case "kafka.upgrades":
		return cutOver
	case "kafka.standby":
		return standbyLive
	case "followed":
		return followedRun
	case "followed.follow":
		return followOnce
	case "followed.stranger":
		return strangeRun
	case "replayed.plain":
		return replayPlain
	case "replayed.follow":
		return replayFollowing
	case "branch":
		return branchAccounts
	case "postgres.upsert":
		return upsertJob
	case "postgres.upsert.floor":
		return upsertFloor
	}
	return nil
}

// runChild measures a task and prints the sample.
func runChild(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	measure := taskNamed(t.Name)
	if measure == nil {
		return fmt.Errorf("no task is called %q", t.Name)
	}
	debug.SetGCPercent(gcPercent)
	if t.Profile != "" {
		f, err := os.Create(profileFile(t))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s, err := measure(t)
	if err != nil {
		return err
	}
	return json.MarshalWrite(os.Stdout, s)
}

func profileFile(t task) string {
	name := t.Name
	if t.Variant != "" {
		name += "." + strings.ReplaceAll(t.Variant, " ", "-")
	}
	return filepath.Join(t.Profile, name+".pprof")
}

// child measures a task in a process of its own.
func (b *bench) child(name, variant string) (sample, error) {
	return startChild(task{setting: b.setting, Name: name, Variant: variant})
}

func startChild(t task) (sample, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t.Started = time.Now().UnixNano()
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, childArgument, string(text))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("task %s: %w: %s", t.Name, err, strings.TrimSpace(said.String()))
	}
	var s sample
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	s[processCPU] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return s, nil
}

// compare measures a task and its floor by turns, and returns the best sample of
// each by the given name: what others do on the machine only ever adds.
func (b *bench) compare(name, floor, variant, by string, times int) (best, bestFloor sample, err error) {
	return b.byTurns(turn{name, variant}, turn{floor, variant}, by, times)
}

// compareVariants is compare for a floor that is another variant of the task.
func (b *bench) compareVariants(name, variant, floor, by string, times int) (best, bestFloor sample, err error) {
	return b.byTurns(turn{name, variant}, turn{name, floor}, by, times)
}

// turn is a task in a variant.
type turn struct{ name, variant string }

func (b *bench) byTurns(task, floor turn, by string, times int) (best, bestFloor sample, err error) {
	for range times {
		f, err := b.child(floor.name, floor.variant)
		if err != nil {
			return nil, nil, err
		}
		s, err := b.child(task.name, task.variant)
		if err != nil {
			return nil, nil, err
		}
		best, bestFloor = lesser(best, s, by), lesser(bestFloor, f, by)
	}
	return best, bestFloor, nil
}

func lesser(a, b sample, by string) sample {
	if a == nil || b[by] < a[by] {
		return b
	}
	return a
}
