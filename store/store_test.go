package store_test

import (
	"testing"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
	"github.com/sluicestream/sluice/store/storetest"
)

func openFolder(t *testing.T, e *env.Env, path string) store.Store {
	t.Helper()
	s, err := store.OpenFolder(e, path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return store.NewMemory() })
}

func TestFolder(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openFolder(t, env.Real(), t.TempDir()) })
}

func TestFolderAmongProcesses(t *testing.T) {
	storetest.RunProcesses(t, func(t *testing.T, place string) store.Store { return openFolder(t, env.Real(), place) })
}

func TestFolderIsDurable(t *testing.T) {
	storetest.RunDurable(t, openFolder)
}
