// Command bench measures what Sluice costs, each figure against a plain program
// written by hand that does the same to the same data in the same run.
//
//	go run ./bench [-only name,…] [-quick] [-dir DIR] [-keep] [-profile DIR]
//
// A figure is measured in processes of its own, which this program starts one
// at a time, a floor's and Sluice's by turns. What is measured with Kafka and
// PostgreSQL is measured on real servers of the run's own. The results go to
// standard output and, unless only some of the data was used, to docs/measured.json,
// where each figure stays until it is measured again, and to docs/measured.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		exitOn(runChild(os.Args[2]))
		return
	}
	exitOn(measureAll())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is a run of the benchmarks.
type bench struct {
	setting setting
	machine machine
	servers *servers
	lock    *os.File
}

// figure is one of the things that are measured.
type figure struct {
	name    string
	measure func(*bench) ([]Result, error)
	// on is the server that it needs, nil for none.
	on func(*bench) (*bench, error)
}

func figures() []figure {
	return []figure{
		{"engine.fold", measureFold, nil},
		{"window.tumbling", measureTumbling, nil},
		{"window.session", measureSession, nil},
		{"window.hopping", measureHopping, nil},
		{"timers", measureTimers, nil},
		{"nexmark.q5", (*bench).measureQuery5, nil},
		{"nexmark.q7", (*bench).measureQuery7, nil},
		{"nexmark.q11", (*bench).measureQuery11, nil},
		{"job.file.zipf", measureZipf, nil},
		{"job.file.uniform", measureUniform, nil},
		{"barrier.encode", measureEncode, nil},
		{"barrier.stall", measureStall, nil},
		{"restore", measureRestore, nil},
		{"plan.sample", measurePlan, nil},
		{"resolve", measureResolve, nil},
		{"migrate", measureMigrate, nil},
		{"write.amplification", measureAmplification, nil},
		{"start.empty", measureStart, nil},
		{"start.million", measureMillion, nil},
		{"stalled.memory", measureStalled, nil},
		{"takeover", measureTakeover, nil},
		{"gc", measureClean, nil},
		{"export", measureExport, nil},
		{"follow.cost", measureFollowCost, nil},
		{"follow.rate", measureFollowRate, nil},
		{"branch.1GB", measureBranching, nil},
		{"kafka.count.json", measureKafkaJSON, (*bench).onKafka},
		{"kafka.count.avro", measureKafkaAvro, (*bench).onKafka},
		{"kafka.exactly-once", measureExactlyOnce, (*bench).onKafka},
		{"kafka.latency", measureLatency, (*bench).onKafka},
		{"kafka.restart", measureKafkaRestart, (*bench).onKafka},
		{"cutover.gap", measureCutover, (*bench).onKafka},
		{"standby", measureStandby, (*bench).onKafka},
		{"postgres.upsert", measureUpsert, (*bench).onPostgres},
	}
}

func measureAll() (err error) {
	only := flag.String("only", "", "measure these figures only: `names` with commas between")
	quick := flag.Bool("quick", false, "measure with about a twentieth of the data, and keep nothing")
	dir := flag.String("dir", filepath.Join("bench", "data"), "the `folder` for data and stores; not on a tmpfs")
	keep := flag.Bool("keep", false, "keep the folder's data for the next run")
	profile := flag.String("profile", "", "write a CPU profile of each process to this `folder`")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join("bench", "main.go")); err != nil {
		return errors.New("run it in the repository's folder: go run ./bench")
	}
	b := &bench{setting: setting{Dir: *dir, Quick: *quick, Profile: *profile}, servers: &servers{}}
	if err := b.prepare(); err != nil {
		return err
	}
	defer b.lock.Close()
	if !*keep {
		defer os.RemoveAll(*dir)
	}
	defer func() { err = errors.Join(err, b.servers.close()) }()
	if err := b.tryServers(chosen); err != nil {
		return err
	}
	results, err := b.measure(chosen)
	if err != nil {
		return err
	}
	if *quick || *only != "" {
		return nil
	}
	return remember(results, true)
}

func choose(only string) ([]figure, error) {
	if only == "" {
		return figures(), nil
	}
	var out []figure
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(figures(), func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no figure is called %q", name)
		}
		out = append(out, figures()[i])
	}
	return out, nil
}

// prepare makes the folder and looks at the machine.
func (b *bench) prepare() error {
	if b.setting.Profile != "" {
		if err := os.MkdirAll(b.setting.Profile, 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(b.setting.Dir, 0o755); err != nil {
		return err
	}
	var err error
	if b.setting.Dir, err = filepath.Abs(b.setting.Dir); err != nil {
		return err
	}
	if b.lock, err = lock(b.setting.Dir); err != nil {
		return err
	}
	if b.machine, err = lookAtMachine(b.setting.Dir); err != nil {
		return err
	}
	fmt.Println(b.machine.String())
	return nil
}

// lock keeps other runs from a folder for as long as the file is open: they
// would remove what this one works with.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another run uses %s (%w); wait for it, or name another folder with -dir", dir, err)
	}
	return f, nil
}

// tryServers starts the servers that figures need: a run that lacks one ends before
// it has measured anything. They rest while figures that need none are measured.
func (b *bench) tryServers(chosen []figure) error {
	for _, f := range chosen {
		if f.on == nil {
			continue
		}
		if _, err := f.on(b); err != nil {
			return fmt.Errorf("%s: %w; -only leaves it out", f.name, err)
		}
	}
	if slices.ContainsFunc(chosen, func(f figure) bool { return f.on == nil }) {
		return b.servers.rest()
	}
	return nil
}

func (b *bench) measure(chosen []figure) ([]Result, error) {
	commit, err := commitOf()
	if err != nil {
		return nil, err
	}
	of := run{Date: time.Now().UTC().Format(time.DateOnly), Commit: commit, Machine: b.machine.String()}
	var all []Result
	for _, f := range chosen {
		began := time.Now()
		results, err := f.measure(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		for i := range results {
			results[i].Run = of
			fmt.Println(results[i].String())
		}
		fmt.Printf("    (measured in %v)\n", time.Since(began).Round(time.Second))
		all = append(all, results...)
		if b.setting.Quick {
			continue
		}
		if err := remember(results, false); err != nil { // what comes later may fail, or be stopped
			return nil, err
		}
	}
	return all, nil
}
