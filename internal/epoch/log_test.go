package epoch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/faultstore"
	"github.com/sluicestream/sluice/store"
)

// rewrite puts other bytes in an object's place, or none.
func rewrite(t *testing.T, s store.Store, path string, edit func([]byte) []byte) {
	t.Helper()
	name := "spend/" + path
	data, err := s.Read(t.Context(), name, MaxObject)
	if err != nil {
		t.Fatal(err)
	}
	if data = edit(data); data == nil {
		err = s.Delete(t.Context(), name)
	} else {
		err = s.Replace(t.Context(), name, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsNamed damages the head in every way; neither readers nor
// starters take it for absent or go back to an older one.
func TestDamageIsNamed(t *testing.T) {
	for what, edit := range map[string]func([]byte) []byte{
		"a flipped bit":        func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"cut short":            func(b []byte) []byte { return b[:len(b)/2] },
		"emptied":              func(b []byte) []byte { return []byte{} },
		"zeroed":               func(b []byte) []byte { return make([]byte, len(b)) },
		"far too large":        func(b []byte) []byte { return make([]byte, MaxObject+1) },
		"another epoch's copy": func(b []byte) []byte { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			s := store.NewMemory()
			p := newProcess(t, s, 1)
			o := p.take()
			before := ManifestPath(MainBranch, FirstTask, commit(t, o, 10).Epoch)
			head := ManifestPath(MainBranch, FirstTask, commit(t, o, 20).Epoch)
			if what == "another epoch's copy" {
				copied, err := s.Read(t.Context(), "spend/"+before, MaxObject)
				if err != nil {
					t.Fatal(err)
				}
				edit = func([]byte) []byte { return copied }
			}
			rewrite(t, s, head, edit)
			_, err := p.job.Head(t.Context(), MainBranch, FirstTask)
			damaged := wantError[*DamagedError](t, "head", err)
			if damaged.Object != "spend/"+head || damaged.ExitCode() != 14 || damaged.Epoch != 3 || !strings.HasPrefix(err.Error(), "spend: branch main, task 0.0, epoch 3: spend/"+head+" is damaged: ") {
				t.Errorf("it says %v", err)
			}
			_, err = newProcess(t, s, 2).job.TakeLive(t.Context(), FirstTask, p.me)
			wantError[*DamagedError](t, "take", err)
		})
	}
}

// TestDamagedRecordsAreNamed does the same to the job's other records.
func TestDamagedRecordsAreNamed(t *testing.T) {
	for _, path := range []string{JobPath, LivePath(0)} {
		s := store.NewMemory()
		p := newProcess(t, s, 1)
		p.take()
		rewrite(t, s, path, func(b []byte) []byte { b[20] ^= 1; return b })
		_, err := openAndTake(t.Context(), testEnv(2), s, p.me)
		if damaged := wantError[*DamagedError](t, path, err); damaged.Object != "spend/"+path {
			t.Errorf("it names %s, want %s", damaged.Object, path)
		}
	}
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	head, _ := p.take().Head()
	rewrite(t, s, VersionPath(head.Version), func(b []byte) []byte {
		return sealed(`{"format":1,"sources":{"other":{"kind":"file"}}`)
	})
	_, err := p.job.Version(t.Context(), head.Version)
	wantError[*DamagedError](t, "a version under another's hash", err)
}

func TestLaterFormatIsNamed(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	head := ManifestPath(MainBranch, FirstTask, commit(t, p.take(), 10).Epoch)
	rewrite(t, s, head, func([]byte) []byte { return sealed(`{"format":7`) })
	_, err := p.job.TakeLive(t.Context(), FirstTask, p.me)
	if later := wantError[*FormatError](t, "take", err); later.Object != "spend/"+head {
		t.Errorf("it names %s", later.Object)
	}
}

func TestBrokenParentIsNamed(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	for next := int64(10); next <= 50; next += 10 {
		commit(t, o, next)
	}
	// A manifest that is whole in itself, but not the one that its child knew.
	rewrite(t, s, ManifestPath(MainBranch, FirstTask, 4), func(b []byte) []byte {
		m, err := Decode[Manifest](b)
		if err != nil {
			t.Fatal(err)
		}
		m.Counts = map[string]int64{"records": 1}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	})
	var read []Epoch
	var last error
	for m, err := range p.job.Manifests(t.Context(), MainBranch, FirstTask, 0, 100) {
		if last = err; err == nil {
			read = append(read, m.Epoch)
		}
	}
	damaged := wantError[*DamagedError](t, "manifests", last)
	if damaged.Object != "spend/"+ManifestPath(MainBranch, FirstTask, 4) || !slices.Equal(read, []Epoch{0, 1, 2, 3, 4}) {
		t.Errorf("read %v, then %v", read, last)
	}
}

func TestMissingManifestIsDamage(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	for next := int64(10); next <= 50; next += 10 {
		commit(t, o, next)
	}
	rewrite(t, s, ManifestPath(MainBranch, FirstTask, 4), func([]byte) []byte { return nil })
	var last error
	for _, err := range p.job.Manifests(t.Context(), MainBranch, FirstTask, 0, 100) {
		last = err
	}
	if damaged := wantError[*DamagedError](t, "manifests", last); damaged.Epoch != 4 {
		t.Errorf("got %+v", damaged)
	}
	clean(t, s, MainBranch, 5)
	rewrite(t, s, ManifestPath(MainBranch, FirstTask, 5), func([]byte) []byte { return nil })
	_, err := p.job.Head(t.Context(), MainBranch, FirstTask)
	if damaged := wantError[*DamagedError](t, "head", err); damaged.Epoch != 5 {
		t.Errorf("got %+v", damaged)
	}
}

func TestSealedLog(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	final := commit(t, o, 10)
	_, hash := o.Head()
	seal(t, s, p.job, MainBranch, final.Epoch+1, hash)
	head, err := p.job.Head(t.Context(), MainBranch, FirstTask)
	if err != nil || !head.Sealed() || head.Manifest.Epoch != final.Epoch || head.Hash != hash || head.Seal.Epoch != final.Epoch+1 {
		t.Errorf("the head is %+v, %v", head, err)
	}
	_, err = p.job.TakeLive(t.Context(), FirstTask, p.me)
	if sealed := wantError[*SealedError](t, "take", err); sealed.Epoch != final.Epoch+1 || sealed.By != "an upgrade" || sealed.Next != "" {
		t.Errorf("got %+v", sealed)
	}
	wantError[*SealedError](t, "commit", lastErr(o.Commit(t.Context(), work(o, 20))))
}

func TestSealWithAnotherParent(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	final := commit(t, p.take(), 10)
	seal(t, s, p.job, MainBranch, final.Epoch+1, "another")
	_, err := p.job.Head(t.Context(), MainBranch, FirstTask)
	if damaged := wantError[*DamagedError](t, "head", err); damaged.Epoch != final.Epoch {
		t.Errorf("got %+v", damaged)
	}
}

func TestLogsThatAreNotThere(t *testing.T) {
	s := store.NewMemory()
	_, err := FindJob(t.Context(), testEnv(1), s, "spend")
	wantError[*NoJobError](t, "find", err)
	if listed, err := s.List(t.Context(), "", "", 1); err != nil || len(listed) != 0 {
		t.Errorf("looking for a job made %v, %v", listed, err)
	}
	for _, name := range []string{"", "a/b", "..", "."} {
		if _, err := OpenJob(t.Context(), testEnv(1), s, name, ""); err == nil {
			t.Errorf("job %q was opened", name)
		}
	}
	p := newProcess(t, s, 1)
	if _, ok, err := p.job.Live(t.Context()); ok || err != nil {
		t.Errorf("live = %v, %v", ok, err)
	}
	_, err = p.job.Head(t.Context(), MainBranch, FirstTask)
	wantError[*NoLogError](t, "the head of an empty log", err)
	_, err = p.job.Take(t.Context(), "other", FirstTask, p.me)
	wantError[*NoLogError](t, "taking another branch", err)
	_, err = p.job.Take(t.Context(), MainBranch, "0.1", p.me)
	wantError[*NoLogError](t, "taking a task that no layout has", err)
	p.take()
	clean(t, s, MainBranch, AllEpochs)
	_, err = p.job.Head(t.Context(), MainBranch, FirstTask)
	wantError[*VoidError](t, "the head of a log that was cleaned away", err)
}

func TestManifestsBetweenEpochs(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	for next := int64(1); next <= 8; next++ {
		commit(t, o, next)
	}
	for _, c := range []struct {
		from, to Epoch
		want     []Epoch
	}{
		{3, 5, []Epoch{3, 4, 5}}, {0, 0, []Epoch{0}}, {5, 4, nil}, {8, 100, []Epoch{8, 9}}, {50, 60, nil},
	} {
		var got []Epoch
		for m, err := range p.job.Manifests(t.Context(), MainBranch, FirstTask, c.from, c.to) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Epoch)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
	clean(t, s, MainBranch, 7)
	if log := checkLog(t, p.job, MainBranch); log[0].Epoch != 7 || len(log) != 3 {
		t.Errorf("behind the floor: %d epochs from %d on", len(log), log[0].Epoch)
	}
	_, err := p.job.Manifest(t.Context(), MainBranch, FirstTask, 6)
	if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "cleaned away") {
		t.Errorf("under the floor: %v", err)
	}
	if m, err := p.job.Manifest(t.Context(), MainBranch, FirstTask, 7); err != nil || m.Epoch != 7 {
		t.Errorf("at the floor: %v", err)
	}
}

// TestHeadAsksFewNames counts what finding a head in a long log costs.
func TestHeadAsksFewNames(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	const epochs = 2000
	for next := range int64(epochs) {
		commit(t, o, next)
	}
	for _, floor := range []Epoch{0, 1, 1000, epochs - 100, epochs + 1} {
		if floor > 0 {
			clean(t, s, MainBranch, floor)
		}
		before := len(p.store.Calls())
		head, err := p.job.Head(t.Context(), MainBranch, FirstTask)
		if err != nil || head.Manifest.Epoch != epochs+1 {
			t.Fatalf("floor %d: head %d, %v", floor, head.Manifest.Epoch, err)
		}
		probes, lists := 0, 0
		for _, c := range p.store.Calls()[before:] {
			switch c.Operation {
			case "exists":
				probes++
			case "list":
				lists++
			}
		}
		most := 2*bits.Len64(uint64(epochs+1-floor)) + 3
		if probes > most || lists > 2 {
			t.Errorf("floor %d: %d probes and %d listings, want at most %d and 2", floor, probes, lists, most)
		}
	}
}

func TestManyFloors(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	o := p.take()
	for next := range int64(3*floorPage + 5) {
		commit(t, o, next)
		clean(t, s, MainBranch, o.NextEpoch()-1)
	}
	if floor, err := p.job.Floor(t.Context(), MainBranch, FirstTask); err != nil || floor != o.NextEpoch()-1 {
		t.Errorf("floor %d, %v; want %d", floor, err, o.NextEpoch()-1)
	}
	if err := s.Create(t.Context(), "spend/"+LogPath(MainBranch, FirstTask)+"floor/9.json", nil); err != nil {
		t.Fatal(err)
	}
	_, err := p.job.Floor(t.Context(), MainBranch, FirstTask)
	wantError[*DamagedError](t, "a floor that can't be read", err)
}

// TestOneJobIDAmongStarters: whoever makes job.json first, all go by it.
func TestOneJobIDAmongStarters(t *testing.T) {
	s := store.NewMemory()
	var rival *Job
	racing := faultstore.New(s, func(c faultstore.Call) faultstore.Fault {
		if c.Operation == "create" && c.Name == "spend/"+JobPath && rival == nil {
			rival = newProcess(t, s, 2).job
		}
		return faultstore.None
	})
	j, err := OpenJob(t.Context(), testEnv(1), racing, "spend", "")
	if err != nil || j.ID() != rival.ID() {
		t.Errorf("%v and %v, %v", j, rival, err)
	}
}

func TestPutVersionKeepsTheFirst(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	v := testVersion()
	v.Functions = map[string]string{"spend": "first"}
	one, err := p.job.PutVersion(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Read(t.Context(), "spend/"+VersionPath(one), MaxObject)
	if err != nil {
		t.Fatal(err)
	}
	v.Functions = map[string]string{"spend": "second"}
	two, err := p.job.PutVersion(t.Context(), v)
	if err != nil || one != two {
		t.Fatalf("%s and %s, %v", one, two, err)
	}
	if after, err := s.Read(t.Context(), "spend/"+VersionPath(one), MaxObject); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the description changed: %v", err)
	}
}

// A build whose functions have other names than those of its version's first keeps
// its own.
func TestFunctionsOfABuild(t *testing.T) {
	s := store.NewMemory()
	p := newProcess(t, s, 1)
	first, second := testVersion(), testVersion()
	first.Functions = map[string]string{"spend": "main.add", "refunds": "main.subtract"}
	second.Functions = map[string]string{"spend": "main.subtract", "refunds": "main.add"}
	builds := map[string]Version{"aa11": first, "bb22": second, "": second}
	for _, executable := range []string{"aa11", "bb22", ""} {
		me := Identity{Build: Build{Executable: executable}, Version: builds[executable]}
		for range 2 { // the second time it is there
			if _, err := p.job.newOwner(t.Context(), MainBranch, FirstTask, &me); err != nil {
				t.Fatal(err)
			}
		}
	}
	hash, err := first.Hash()
	if err != nil {
		t.Fatal(err)
	}
	for executable, want := range map[string]map[string]string{"aa11": first.Functions, "bb22": second.Functions, "cc33": first.Functions, "": first.Functions} {
		got, err := p.job.Functions(t.Context(), Build{Executable: executable, Version: hash})
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("build %q: %v, %v; expected %v", executable, got, err, want)
		}
	}
	listed, err := s.List(t.Context(), "spend/functions/", "", 10)
	if err != nil || len(listed) != 1 || listed[0].Name != "spend/"+FunctionsPath(hash, "bb22") {
		t.Errorf("stored are %v (%v), expected only what differs", listed, err)
	}
	rewrite(t, s, FunctionsPath(hash, "bb22"), func(b []byte) []byte { b[20] ^= 1; return b })
	var damaged *DamagedError
	if _, err := p.job.Functions(t.Context(), Build{Executable: "bb22", Version: hash}); !errors.As(err, &damaged) {
		t.Errorf("a flipped bit is %v", err)
	}
	if _, err := p.job.Functions(t.Context(), Build{Version: "00ff"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a version that isn't there is %v", err)
	}
}

// TestMissedObjects is S4: what is not there was cleaned away, or is damage.
func TestMissedObjects(t *testing.T) {
	p := newProcess(t, store.NewMemory(), 1)
	o := p.take()
	m := commit(t, o, 10)
	commit(t, o, 20)
	gone := fmt.Errorf("a segment: %w", store.ErrNotFound)
	if err := p.job.Missed(t.Context(), m, gone); err != gone {
		t.Errorf("not cleaned up: %v", err)
	}
	if err := p.job.PutFloor(t.Context(), MainBranch, FirstTask, m.Epoch+1); err != nil {
		t.Fatal(err)
	}
	wantError[*CleanedError](t, "cleaned up", p.job.Missed(t.Context(), m, gone))
	if other := errors.New("a disk that fails"); p.job.Missed(t.Context(), m, other) != other {
		t.Error("another error is taken for a clean-up")
	}
}
