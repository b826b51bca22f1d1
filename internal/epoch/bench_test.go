package epoch

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

func benchIdentity() Identity {
	return Identity{Build: Build{Executable: "exe"}, Version: testVersion(), Writer: ThisProcess()}
}

// BenchmarkFirstStart goes from an empty folder to the owner's opening.
func BenchmarkFirstStart(b *testing.B) {
	folder := b.TempDir()
	e := env.Real()
	for i := 0; b.Loop(); i++ {
		s, err := store.OpenFolder(e, filepath.Join(folder, strconv.Itoa(i)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := openAndTake(b.Context(), e, s, benchIdentity()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit writes one epoch after the other into a folder.
func BenchmarkCommit(b *testing.B) {
	e := env.Real()
	s, err := store.OpenFolder(e, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	o, err := openAndTake(b.Context(), e, s, benchIdentity())
	if err != nil {
		b.Fatal(err)
	}
	next := int64(0)
	for b.Loop() {
		next++
		if _, err := o.Commit(b.Context(), work(o, next)); err != nil {
			b.Fatal(err)
		}
	}
}
