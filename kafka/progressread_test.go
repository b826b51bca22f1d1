package kafka

import "testing"

// A reading goes on behind what is known only of the same topic, under the same leader, that
// has not become shorter; otherwise it begins anew.
func TestReadingGoesOnWhereNothingHasChanged(t *testing.T) {
	one, other := [16]byte{1}, [16]byte{2}
	known := progressRead{newest: map[string]progressEntry{}, next: 10, leaderEpoch: 3, id: one}
	for name, c := range map[string]struct {
		read  progressRead
		place progressPlace
		end   int64
		want  bool
	}{
		"it has grown":           {known, progressPlace{leaderEpoch: 3, id: one}, 12, true},
		"nothing has come":       {known, progressPlace{leaderEpoch: 3, id: one}, 10, true},
		"it was cut":             {known, progressPlace{leaderEpoch: 3, id: one}, 9, false},
		"another leader":         {known, progressPlace{leaderEpoch: 4, id: one}, 12, false},
		"another topic":          {known, progressPlace{leaderEpoch: 3, id: other}, 12, false},
		"brokers that give none": {progressRead{newest: known.newest, next: 10, leaderEpoch: 3}, progressPlace{leaderEpoch: 3}, 12, false},
		"nothing was read":       {progressRead{}, progressPlace{}, 12, false},
	} {
		if at, ok := c.read.from(c.place, c.end); ok != c.want || ok && at != 10 {
			t.Errorf("%s: it goes on at %d: %t, expected %t", name, at, ok, c.want)
		}
	}
}
