package cli

import (
	"cmp"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// report tells how a run goes on: as events for machines, as a line on a
// terminal that is written again and again, or now and then in the log.
type report struct {
	log *slog.Logger // for the job, which says its name itself
	own *slog.Logger // for what the command line has to say

	events   bool
	screen   *screen // nil without a terminal
	done     chan struct{}
	mu       sync.Mutex
	progress *progress
	told     time.Time           // when the log last had the progress
	differed map[string]toldSink // by sink
	compared bool                // that all was compared has been told
}

const (
	// redrawEvery keeps the line on a terminal going while nothing is committed.
	redrawEvery = time.Second
	// tellEvery is the time between two lines of progress in a log.
	tellEvery = 10 * time.Second
)

// newReport makes a report: with events on out, otherwise for people on errs.
func newReport(job string, out, errs io.Writer, events bool, level slog.Level, units map[string]string) *report {
	r := openReport(out, errs, events, level, units)
	r.own = r.log.With("job", job)
	return r
}

func openReport(out, errs io.Writer, events bool, level slog.Level, units map[string]string) *report {
	now := time.Now()
	r := &report{events: events, done: make(chan struct{}), progress: newProgress(now, units), told: now, differed: map[string]toldSink{}}
	if events {
		r.log = slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: asEvent}))
		return r
	}
	if _, ok := terminal(errs); !ok {
		r.log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: level}))
		return r
	}
	r.screen = &screen{w: errs}
	r.log = slog.New(slog.NewTextHandler(r.screen, &slog.HandlerOptions{Level: level, ReplaceAttr: forPeople}))
	return r
}

// start keeps the line on a terminal going, until the report is told of the end.
func (r *report) start() {
	if r.screen != nil {
		go r.redraw()
	}
}

// asEvent makes an event of what is logged.
func asEvent(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "event"
	case slog.TimeKey:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.LevelKey:
		a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
	}
	return a
}

// forPeople keeps of a line's time what changes within a day.
func forPeople(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.String(slog.TimeKey, a.Value.Time().Format(time.TimeOnly))
	}
	return a
}

// committed is told of each epoch.
func (r *report) committed(c Committed) {
	now := time.Now()
	slices.SortFunc(c.Partitions, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Partition, b.Partition))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.add(now, c)
	switch {
	case r.events:
		r.own.Info("committed", "epoch", c.Epoch, "position", c.Position, "records", c.Records,
			"dead_letters", c.DeadLetters, "partitions", c.Partitions)
	case r.screen != nil:
		r.screen.show(r.progress.line(now))
	case now.Sub(r.told) >= tellEvery:
		r.told = now
		r.own.Info("progress", r.progress.attrs(now)...)
	}
}

// redraw writes the line on the terminal from time to time.
func (r *report) redraw() {
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.mu.Lock()
			r.screen.show(r.progress.line(now))
			r.mu.Unlock()
		case <-r.done:
			return
		}
	}
}

// stopped tells how the run has ended. People are told of an error elsewhere.
func (r *report) stopped(err error, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.done)
	r.screen.show("")
	attrs := []any{"why", why, "epochs", r.progress.epochs, "records", r.progress.records, "dead_letters", r.progress.deadLetters}
	switch {
	case err == nil && r.events:
		r.own.Info("stopped", append(attrs, "exit_code", exitDone)...)
	case err == nil:
		r.own.Info("stopped", attrs...)
	case r.events:
		r.own.Error("stopped", append(attrs, "exit_code", exitCode(err), "error", err.Error())...)
	}
}

// screen is a terminal whose last line is written again and again, while other
// lines go by above it.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	last string // the line that stands there
}

const clearLine = "\r\x1b[K"

// Write implements io.Writer: p is whole lines.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.last != "" {
		b.WriteString(clearLine)
	}
	b.Write(p)
	b.WriteString(s.last)
	if _, err := io.WriteString(s.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show puts a line in the place of the last, cut to the terminal's width; an
// empty one leaves nothing. A screen that is nil shows nothing.
func (s *screen) show(line string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if width, ok := terminal(s.w); ok {
		line = cut(line, width-1)
	}
	s.last = line
	io.WriteString(s.w, clearLine+line)
}

// cut keeps at most n characters of a text.
func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:max(n-1, 0)]) + "…"
}
