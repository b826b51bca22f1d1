package sluice

import (
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/engine"
	"github.com/sluicestream/sluice/schema"
)

// Timer is a timer at the key in hand of a Process: each key has one of its own, which
// is kept with the epochs like a state, and is fired once, whatever restarts there are.
// In the function that it calls, the key in hand is its own, and [Context.Time] when it
// was due. What that puts out has this time.
//
// Timers that are due together are fired by their times, and those of a key and an
// instant in the order in which they were set. One that is set for a time that has
// passed is fired at the end of the batch that is being read.
type Timer struct{ t timer }

// timer is an engine's, whatever its keys.
type timer interface {
	At() (at Instant, ok bool)
	Set(at Instant)
	Delete()
}

// Set sets the timer; one that is set already is replaced.
func (t *Timer) Set(at Instant) { t.t.Set(at) }

// Delete takes the timer back, if it is set.
func (t *Timer) Delete() { t.t.Delete() }

// At tells when the timer is due, and whether it is set.
func (t *Timer) At() (at Instant, set bool) { return t.t.At() }

// OnTimer returns a timer of event time: fire is called once the watermark has reached
// the instant that it is set to. The records must have a time ([Stream.EventTime]). The
// name is the timer's for good, as a state's is.
func (p *Setup[K, O]) OnTimer(name string, fire func(*Context[K, O])) *Timer {
	return p.timer(name, false, fire)
}

// OnClock returns a timer of the epochs' frozen clock, which never goes back: fire is
// called when an epoch begins at the instant that it is set to or later, before the
// first record of the epoch. An epoch begins for it if there is no input.
func (p *Setup[K, O]) OnClock(name string, fire func(*Context[K, O])) *Timer {
	return p.timer(name, true, fire)
}

func (p *Setup[K, O]) timer(name string, clock bool, fire func(*Context[K, O])) *Timer {
	if !p.building {
		spec := p.op.states[name].(engine.TimerSpec[K])
		c := p.context
		return &Timer{engine.OpenTimer(p.in, p.stage, spec, func() { fire(c) })}
	}
	job, o := p.op.job, p.owns(name)
	job.claim("timer", name, o.from)
	goesBy := "event time"
	if clock {
		goesBy = "clock"
		job.graph.NeedClock()
	} else if p.stage != nil {
		p.untimed("OnTimer " + name)
	}
	if p.stage == nil {
		return &Timer{}
	}
	value, err := schema.Of[engine.TimerEntry](name)
	if err != nil {
		job.fault("timer %q: %v", name, err)
		return &Timer{}
	}
	d := descriptor{name: name}
	untyped := d.specOf("timer", o)
	untyped.Parameters = map[string]string{"timer " + name: goesBy}
	if !clock {
		untyped.Times = p.stage.Times()
	}
	spec, err := engine.AddState(job.graph, p.stage, untyped, value, carry.Spec[K, engine.TimerEntry]{})
	if err != nil {
		job.fault("timer %q: %v", name, err)
		return &Timer{}
	}
	p.op.states[name] = engine.TimerSpec[K]{Table: spec, Clock: clock}
	return &Timer{}
}
