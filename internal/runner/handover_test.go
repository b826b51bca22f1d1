package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/epoch"
)

// movingTarget is a target whose deliverers shut each other out, and whose record stands
// where a test says: at the last of the positions once the others were looked at. At a
// negative one the look fails.
type movingTarget struct {
	connector.OpenEndsTarget
	stands []int
	looks  int
}

func (m *movingTarget) Record(context.Context) (*connector.SinkRecord, error) {
	at := m.stands[min(m.looks, len(m.stands)-1)]
	m.looks++
	if at < 0 {
		return nil, errors.New("connection lost")
	}
	return &connector.SinkRecord{Position: connector.Position(at)}, nil
}

// boundedClock is a clock whose pauses end at once, and at which a successor has waited for
// long enough at once, or never.
type boundedClock struct {
	env.Clock
	over bool
}

func (c boundedClock) NewTimer(d time.Duration) env.Timer {
	if d == handOverWithin && !c.over {
		return c.Clock.NewTimer(time.Hour)
	}
	return c.Clock.NewTimer(0)
}

// A successor waits until the delivery has ended that was under way at its first look, and
// for no more; not at all where the sink has everything, or can't be looked at.
func TestSuccessorWaitsForTheDeliveryUnderWay(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, c := range map[string]struct {
		stands []int
		owed   int
		looks  int // 0: as many as the time allows
		over   bool
		alone  bool // nobody has been live before
	}{
		"the one under way ends":      {stands: []int{3, 3, 3, 4}, owed: 6, looks: 4},
		"two end between two looks":   {stands: []int{3, 5}, owed: 6, looks: 2},
		"the last one ends":           {stands: []int{5, 6}, owed: 6, looks: 2},
		"the sink has all":            {stands: []int{6}, owed: 6, looks: 1},
		"it has more":                 {stands: []int{7}, owed: 6, looks: 1},
		"the sink can't be looked at": {stands: []int{3, -1}, owed: 6, looks: 2},
		"nothing comes of it":         {stands: []int{3}, owed: 6, over: true},
		"nobody was there":            {stands: []int{3}, owed: 6, alone: true, looks: -1},
	} {
		t.Run(name, func(t *testing.T) {
			world := env.Real()
			world.Clock = boundedClock{world.Clock, c.over}
			m := &movingTarget{stands: c.stands}
			r := &runner{o: Options{Env: world}, handedOver: !c.alone}
			r.awaitLast(t.Context(), &sink{target: m}, []epoch.Owed{{To: 4}, {To: epoch.Position(c.owed)}})
			if c.looks != 0 && m.looks != max(c.looks, 0) {
				t.Errorf("it looked %d times, expected %d", m.looks, max(c.looks, 0))
			}
		})
	}
}
