package memory

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
)

const mib = 1 << 20

func at() epoch.At { return epoch.At{Job: "spend", Branch: "main", Task: "0.0", Epoch: 1841} }

func TestAdmit(t *testing.T) {
	two := []Need{{State: "shops", Rows: 10, Bytes: 50 * mib, AtLeast: 34 * mib}, {State: "spend", Rows: 90, Bytes: 90 * mib, AtLeast: 50 * mib}}
	for _, test := range []struct {
		name  string
		needs []Need
		limit int64
		fits  bool
	}{
		{"no limit", two, 0, true},
		{"exactly: 34 + 50 + 16 for the engine", two, 100 * mib, true},
		{"a byte less", two, 100*mib - 1, false},
		{"the upper bounds do not count", two, 101 * mib, true},
		{"no state", nil, 16 * mib, true},
		{"not even the engine", nil, 15 * mib, false},
		{"figures beyond all numbers", []Need{{State: "a", AtLeast: math.MaxInt64}, {State: "b", AtLeast: 1 << 62}}, 1 << 40, false},
		{"figures below nought count for nothing", []Need{{State: "a", AtLeast: -1 << 62}, {State: "b", AtLeast: 2 * mib}}, 17 * mib, false},
	} {
		err := Admit(at(), test.needs, Limit{test.limit, FromCgroup})
		var large *TooLargeError
		if fits := err == nil; fits != test.fits || !fits && (!errors.As(err, &large) || large.ExitCode() != 17) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestWhatARefusalSays(t *testing.T) {
	needs := []Need{
		{State: "a", Rows: 1, Bytes: 1 * mib, AtLeast: 1 * mib}, {State: "b", Rows: 2, Bytes: 2 * mib, AtLeast: 2 * mib},
		{State: "c", Rows: 3, Bytes: 9 * mib, AtLeast: 3 * mib}, {State: "d", Rows: 4, Bytes: 4 * mib, AtLeast: 4 * mib},
		{State: "e", Rows: 5, Bytes: 5 * mib, AtLeast: 5 * mib}, {State: "f", Rows: 6, Bytes: 6 * mib, AtLeast: 6 * mib},
		{State: "g", Rows: 7, Bytes: 7 * mib, AtLeast: 7 * mib},
	}
	got := Admit(at(), needs, Limit{32 * mib, FromGo}).Error()
	want := "spend: branch main, task 0.0, epoch 1841: the state does not fit in memory: it needs at least 44.0 MiB " +
		"(g 7.0 MiB to 7.0 MiB in 7 rows, f 6.0 MiB to 6.0 MiB in 6 rows, e 5.0 MiB to 5.0 MiB in 5 rows, d 4.0 MiB to 4.0 MiB in 4 rows, " +
		"c 3.0 MiB to 9.0 MiB in 3 rows, 2 more states, the engine 16.0 MiB), the limit is 32.0 MiB (GOMEMLIMIT). " +
		"Nothing was changed. To run it, raise GOMEMLIMIT; a state that the job can do without is dropped by a build without it and `job run --drop STATE`."
	if got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	for source, way := range map[string]string{
		FromCgroup: "container or unit", FromCgroup1: "container or unit", FromMachine: "a machine with more memory", FromFlag: "raise --memory-limit",
	} {
		if got := Admit(at(), needs, Limit{mib, source}).Error(); !strings.Contains(got, way) {
			t.Errorf("%s: the way out isn't %q: %s", source, way, got)
		}
	}
}
