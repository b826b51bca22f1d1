package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicestream/sluice/internal/epoch"
)

// times has a line for each event time.
func (c *comparison) times() {
	for name := range both(c.Old.Times, c.New.Times) {
		l := c.line(TimePart, name)
		old, had := c.Old.Times[name]
		now, has := c.New.Times[name]
		switch {
		case !has:
			l.Note("gone; its watermark is dropped, and nothing else")
		case !had:
			l.Note("new; what goes by it has no watermark, and closes nothing, until each partition that it comes of has had a time, or is idle")
			for gone, was := range sorted(c.Old.Times) {
				if _, stays := c.New.Times[gone]; !stays && slices.Equal(was.Inputs, now.Inputs) {
					l.Note(fmt.Sprintf("if it is %s under another name, name it %s with TimeName: so its watermark goes on", gone, gone))
				}
			}
		default:
			c.time(l, old, now)
		}
	}
}

// time compares an event time that was there.
func (c *comparison) time(l *Line, old, now epoch.Part) {
	c.noteFunction(l, "function", epoch.TimeFunction(l.Name))
	if gone := without(old.Inputs, now.Inputs); len(gone) > 0 {
		l.Note("it comes no more of " + list(gone) + ", whose partitions hold its watermark back no more")
	}
	if added := without(now.Inputs, old.Inputs); len(added) > 0 {
		l.Note("it comes of " + list(added) + " as well, each partition of which holds its watermark where it is until it has had a time, or is idle")
	}
	c.compareParameters(l, old, now, func(name string) bool {
		return name == "generator" && bare(old.Parameters[name]) == bare(now.Parameters[name])
	})
	if was, is := old.Parameters["lateness"], now.Parameters["lateness"]; was != "" && is != "" && was != is {
		if at, ok := c.Head.Watermarks[l.Name]; ok && !at.Watermark.IsZero() {
			l.Note("the watermark is " + time.UnixMicro(int64(at.Watermark)).UTC().Format(time.RFC3339Nano) + ", and never goes back: " + latenessNote(was, is))
		}
	}
}

// latenessNote says what it means that the lateness is another one.
func latenessNote(was, is string) string {
	before, _ := time.ParseDuration(was)
	if after, _ := time.ParseDuration(is); after > before {
		return "it stays there until each partition has had a time " + is + " ahead of its own"
	}
	return "with the next batch of each partition it moves ahead, and records may be late that " + was + " had waited for"
}

// operatorTimes adds that an operator goes by other event times.
func (c *comparison) operatorTimes(l *Line, old, now []string) {
	if slices.Equal(old, now) || len(old) == 0 {
		return
	}
	l.Add(Resolves, fmt.Sprintf("%s, event time: %s → %s", l.Name, strings.Join(old, ", "), orNothing(now)), "")
	if len(without(now, old)) > 0 {
		l.Note("its watermark is the least of " + list(now) + ", and may lie behind what it was: what has closed stays closed")
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
