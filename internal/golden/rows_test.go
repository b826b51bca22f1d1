package golden

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/outbox"
)

// TestEveryRowIsThere sees that the data objects have heads of every kind, and that the
// outboxes have rows of every kind.
func TestEveryRowIsThere(t *testing.T) {
	p := enter(t, copied(t, filepath.Base(newest())), "")
	rows, deletes := map[string]bool{}, map[string]bool{}
	for _, p.job = range []string{"golden", "moves", "topics", "windows"} {
		branches, err := p.log().Branches(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, branch := range branches {
			if !p.begun(branch) {
				continue
			}
			for _, m := range p.manifests(branch) {
				for name, s := range m.State {
					for _, segment := range s.Segments {
						meta := p.meta(segment.Path)
						if meta("sluice.state") != name || meta("sluice.format") != "1" {
							t.Errorf("%s is of state %q, format %q", segment.Path, meta("sluice.state"), meta("sluice.format"))
						}
						deletes[meta("sluice.deletes")] = true
					}
				}
				for name, s := range m.Sinks {
					maps.Copy(rows, p.rows(name, s.Outbox))
				}
			}
		}
	}
	want := []string{"append row", "append row wire", "delete wire", "put row", "put row wire"}
	if got := slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
		t.Errorf("the outboxes have rows of the kinds %q, want %q", got, want)
	}
	if got := slices.Sorted(maps.Keys(deletes)); !slices.Equal(got, []string{"", "none"}) {
		t.Errorf("the segments have the deletes %q, want none and some", got)
	}
}

// begun tells whether a branch has more than its record, and a seal.
func (p *place) begun(branch string) bool {
	p.t.Helper()
	head, err := p.log().Head(p.t.Context(), branch, epoch.FirstTask)
	var none *epoch.NoLogError
	if err != nil && !errors.As(err, &none) {
		p.t.Fatal(err)
	}
	return err == nil && head.Manifest.Kind != epoch.Seal && head.Manifest.JobID != ""
}

// rows are the kinds of rows of a sink's outbox.
func (p *place) rows(sink string, objects []epoch.Object) map[string]bool {
	p.t.Helper()
	kinds := map[string]bool{}
	for _, o := range objects {
		meta := p.meta(o.Path)
		if meta("sluice.sink") != sink || meta("sluice.contract") != "1" || meta("sluice.connector") == "" || meta("sluice.target") == "" {
			p.t.Errorf("%s is of sink %q, connector %q, contract %q, target %q", o.Path, meta("sluice.sink"), meta("sluice.connector"), meta("sluice.contract"), meta("sluice.target"))
		}
	}
	box, err := outbox.Open(p.t.Context(), p.store, p.job, objects)
	if err != nil {
		p.t.Fatal(err)
	}
	for row, err := range box.Rows(p.t.Context()) {
		if err != nil {
			p.t.Fatal(err)
		}
		words := []string{map[connector.Op]string{connector.Append: "append", connector.Put: "put", connector.Delete: "delete"}[row.Op]}
		if row.Row != nil {
			words = append(words, "row")
		}
		if row.Wire != nil {
			words = append(words, "wire")
		}
		kinds[strings.Join(words, " ")] = true
	}
	return kinds
}

// meta reads the metadata in a data object's head.
func (p *place) meta(path string) func(key string) string {
	p.t.Helper()
	data, err := p.store.Read(p.t.Context(), p.job+"/"+path, epoch.MaxObject)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := avrofile.NewReader(strings.NewReader(string(data)))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Meta
}
