package kafka

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// The settings of a topic that bound a record's own time. The one that bounds both
// sides is of brokers before Kafka 4.0, and counts where its successor is not set.
const (
	timeType       = "message.timestamp.type"
	logAppendTime  = "LogAppendTime" // brokers set the time: a record's own doesn't matter
	timeBefore     = "message.timestamp.before.max.ms"
	timeAfter      = "message.timestamp.after.max.ms"
	timeDifference = "message.timestamp.difference.max.ms"
)

// noTimestamp is a time that brokers take for none, whatever the bounds are.
const noTimestamp = -1

// A record is delivered some time after it was made, and is older by then. So the
// bound on its age is held with a margin: a tenth of it, and at most this long.
const (
	longestTimeMargin = time.Hour
	timeMarginShare   = 10
)

// timeBounds are how far a record's own time may be from now.
type timeBounds struct {
	clock         env.Clock
	before, after timeBound
	margin        int64 // in milliseconds, of before
}

// timeBound is one side's bound.
type timeBound struct {
	setting string // the topic's, by name
	most    int64  // in milliseconds; math.MaxInt64: none
}

// newTimeBounds reads a topic's settings. It is nil where nothing is bounded, and
// where the settings may not be read (nil).
func newTimeBounds(clock env.Clock, topic string, configs map[string]string) (*timeBounds, error) {
	if configs[timeType] == logAppendTime {
		return nil, nil
	}
	most := map[string]int64{}
	for _, setting := range []string{timeBefore, timeAfter, timeDifference} {
		most[setting] = math.MaxInt64
		text, ok := configs[setting]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("topic %s: %s is %q, expected a number of milliseconds", topic, setting, text)
		}
		most[setting] = n
	}
	side := func(setting string) timeBound {
		if most[setting] == math.MaxInt64 {
			setting = timeDifference
		}
		return timeBound{setting, most[setting]}
	}
	t := &timeBounds{clock: clock, before: side(timeBefore), after: side(timeAfter)}
	if t.before.most == math.MaxInt64 && t.after.most == math.MaxInt64 {
		return nil, nil
	}
	t.margin = min(t.before.most/timeMarginShare, longestTimeMargin.Milliseconds())
	return t, nil
}

// check refuses a record by its own time, in milliseconds, as brokers would when it
// is delivered. A time ahead needs no margin: it only gets nearer.
func (t *timeBounds) check(topic string, at int64) error {
	if t == nil || at == connector.NoTime || at == noTimestamp {
		return nil
	}
	now := t.clock.Now().UnixMilli()
	bound, margin := t.before, t.margin
	apart := uint64(now) - uint64(at) // right, however far they are apart
	if at > now {
		bound, margin, apart = t.after, 0, uint64(at)-uint64(now)
	}
	if bound.most == math.MaxInt64 || apart <= uint64(bound.most-margin) {
		return nil
	}
	return &RecordTimeError{
		Topic: topic, Time: time.UnixMilli(at).UTC(), Now: time.UnixMilli(now).UTC(), Setting: bound.setting,
		Limit: bound.most, Margin: margin,
	}
}

// RecordTimeError says that a record's own time is further from now than its topic
// takes.
type RecordTimeError struct {
	// Topic is where it was to be written to.
	Topic string
	// Time is the record's own, and Now when it was made.
	Time, Now time.Time
	// Setting is the topic's that bounds the time, such as
	// "message.timestamp.after.max.ms", and Limit its value, in milliseconds.
	Setting string
	Limit   int64
	// Margin is how much of Limit is left for the way to the topic, in
	// milliseconds; 0 for a time ahead.
	Margin int64
}

// Error implements error.
func (e *RecordTimeError) Error() string {
	side, margin := "behind", ""
	if e.Time.After(e.Now) {
		side = "ahead of"
	}
	if e.Margin > 0 {
		margin = fmt.Sprintf(", of which %v are left for the delivery", milliseconds(e.Margin))
	}
	const form = "2006-01-02T15:04:05.000Z"
	return fmt.Sprintf("topic %s takes records of a time at most %v %s its brokers' (%s=%d)%s, and this record's is %s, made at %s: give it another time, or raise the topic's %s and start again",
		e.Topic, milliseconds(e.Limit), side, e.Setting, e.Limit, margin, e.Time.Format(form), e.Now.Format(form), e.Setting)
}

// milliseconds is a duration, or the longest that there is.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
