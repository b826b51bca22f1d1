package fsck_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/fsck"
)

// damages are what is done to an object; nil bytes delete it.
var damages = []struct {
	name string
	do   func(data []byte) []byte
}{
	{"its first byte", func(d []byte) []byte { return flip(d, 0) }},
	{"a byte in the middle", func(d []byte) []byte { return flip(d, len(d)/2) }},
	{"a byte near the end", func(d []byte) []byte { return flip(d, len(d)-10) }},
	{"its last byte", func(d []byte) []byte { return flip(d, len(d)-1) }},
	{"cut short by one", func(d []byte) []byte { return d[:len(d)-1] }},
	{"cut in half", func(d []byte) []byte { return d[:len(d)/2] }},
	{"emptied", func([]byte) []byte { return []byte{} }},
	{"deleted", func([]byte) []byte { return nil }},
}

func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 4
	return data
}

// untold says why nobody can tell that an object was deleted, or "".
func untold(name epoch.Name, referred bool) string {
	switch name.Kind {
	case epoch.PinObject, epoch.SavepointObject:
		return "they are deleted when they are not needed any more"
	case epoch.HeartbeatObject:
		return "an owner that never came to write one leaves the same"
	case epoch.ControlObject:
		return "it is the newest request, and no manifest notes it"
	case epoch.DataObject:
		if !referred {
			return "nothing refers to it, so clean-up would take it"
		}
	}
	return ""
}

// harmless says why damage to an object, short of its loss, is none; or "".
func harmless(name epoch.Name, referred bool) string {
	switch {
	case name.Kind == epoch.DataObject && !referred:
		return "nothing refers to it"
	case name.Kind == epoch.ManifestObject && name.Epoch < lifeFloor && name.Epoch != savedEpoch:
		return "it was cleaned away"
	}
	return ""
}

// TestDamage damages every object in every way.
func TestDamage(t *testing.T) {
	l := newLife(t)
	t.Run("fsck", func(t *testing.T) { checkEachDamage(t, l) })
	t.Run("run", func(t *testing.T) { runOnEachDamage(t, l) })
}

// checkEachDamage checks the store: the object must be named, and it alone.
func checkEachDamage(t *testing.T, l life) {
	if whole := l.check(t, fsck.Options{}); !whole.Whole() || len(whole.Logs) != 1 || whole.LeftOvers == 0 || whole.ForeignCount != 0 {
		t.Fatalf("before any damage: %+v", whole)
	}
	referred := l.referred(t)
	for _, object := range l.objects(t) {
		name, ok := epoch.ParsePath(strings.TrimPrefix(object, "spend/"))
		if !ok {
			t.Errorf("%s is foreign", object)
		}
		intact, err := os.ReadFile(l.path(object))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range damages {
			l.put(t, object, d.do(intact))
			report := l.check(t, fsck.Options{Shallow: true})
			want := []string{object}
			switch {
			case harmless(name, referred[object]) != "", d.name == "deleted" && untold(name, referred[object]) != "":
				want = nil
			case d.name == "deleted" && name.Kind == epoch.FloorObject:
				// What is missing then is what the floor says was cleaned away.
				want = []string{
					"spend/" + epoch.ManifestPath(name.Branch, name.Task, 0),
					"spend/" + epoch.ManifestPath(name.Branch, name.Task, savedEpoch+1),
				}
			}
			if found := objectsOf(report); !slices.Equal(found, want) {
				t.Errorf("%s, %s: found %+v", object, d.name, report.Findings)
			}
			l.put(t, object, intact)
		}
	}
}

func objectsOf(r fsck.Report) []string {
	var names []string
	for _, f := range r.Findings {
		names = append(names, f.Object)
	}
	return slices.Compact(names)
}

// put writes an object's bytes in place, or deletes it.
func (l life) put(t testing.TB, object string, data []byte) {
	t.Helper()
	err := os.Remove(l.path(object))
	if data != nil {
		err = os.WriteFile(l.path(object), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// referred are the files that kept manifests refer to, found in their texts.
func (l life) referred(t testing.TB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	objects := l.objects(t)
	for _, manifest := range objects {
		name, _ := epoch.ParsePath(strings.TrimPrefix(manifest, "spend/"))
		if name.Kind != epoch.ManifestObject {
			continue
		}
		text, err := os.ReadFile(l.path(manifest))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if bytes.Contains(text, []byte(`"`+strings.TrimPrefix(object, "spend/")+`"`)) {
				all[object] = true
			}
		}
	}
	return all
}

// runOnEachDamage starts the job on the damaged store: it names the object, or it
// doesn't need it and ends with exactly the right outputs and state. In no case
// does it go on from an older epoch in silence.
func runOnEachDamage(t *testing.T, l life) {
	golden := l.snapshot(t)
	if err := l.run(t, "z", 2); err != nil {
		t.Fatal(err)
	}
	want := l.outcome(t)
	l.restore(t, golden)
	for _, object := range chosen(l.objects(t)) {
		for _, d := range damages {
			if os.Getenv("SLUICE_TORTURE") == "" && !slices.Contains([]string{"a byte in the middle", "deleted"}, d.name) {
				continue
			}
			intact, err := os.ReadFile(l.path(object))
			if err != nil {
				t.Fatal(err)
			}
			l.put(t, object, d.do(intact))
			if err := l.run(t, "z", 2); err != nil {
				damage, ok := errors.AsType[*epoch.DamagedError](err)
				if !ok || damage.Object != object {
					t.Errorf("%s, %s: the run doesn't name it: %v", object, d.name, err)
				}
				if after := l.snapshot(t); !sameOutputs(golden, after, l) {
					t.Errorf("%s, %s: the outputs have changed", object, d.name)
				}
			} else {
				l.put(t, object, intact) // to look at the result
				if wrong := l.outcome(t).same(want); wrong != "" {
					t.Errorf("%s, %s: the run ends with %s", object, d.name, wrong)
				}
			}
			l.restore(t, golden)
		}
	}
}

// sameOutputs tells whether the outputs are the same in two snapshots.
func sameOutputs(a, b snapshot, l life) bool {
	for _, pair := range [][2]snapshot{{a, b}, {b, a}} {
		for path, data := range pair[0] {
			if strings.HasPrefix(path, l.folder+"/out/") && !bytes.Equal(pair[1][path], data) {
				return false
			}
		}
	}
	return true
}

// chosen are the objects that a run is tried on: all of them in the long tests,
// otherwise the last of each kind that a start needs.
func chosen(objects []string) []string {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return objects
	}
	last := map[epoch.ObjectKind]string{}
	for _, object := range objects {
		name, _ := epoch.ParsePath(strings.TrimPrefix(object, "spend/"))
		last[name.Kind] = object
		if name.Kind == epoch.DataObject && !strings.HasPrefix(name.Given, "outbox.") {
			last["segment"] = object
		}
	}
	for _, kind := range []epoch.ObjectKind{epoch.ControlObject, epoch.PinObject, epoch.SavepointObject} {
		delete(last, kind)
	}
	return slices.Sorted(maps.Values(last))
}
