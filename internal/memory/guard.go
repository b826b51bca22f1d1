package memory

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/sluicestream/sluice/internal/epoch"
)

const (
	// rearm is how far, in percent of the limit, the use must fall below a level
	// before that is said again: a job that hovers there says it once.
	rearm = 5
	// full is the use, in percent of the limit, at which a state that is still
	// being loaded can't fit. Beyond it the collector would take all CPU, and
	// then the kernel would end the process, again at each restart.
	full = 95
)

// levels are the uses, in percent of the limit, that are worth a warning.
var levels = [...]int64{80, 90}

// Guard watches how near a process is to its limit. It holds what is needed, as
// the last collection left it, against the limit: what is mapped is garbage in
// good part, which the collector lets grow up to 90% of the limit at all times.
//
// A Guard does nothing by itself; its methods are safe for many goroutines.
type Guard struct {
	limit   Limit
	measure func() use
	collect func()

	mu        sync.Mutex
	told      int   // the levels that have been told, from the lowest
	collected int64 // what was mapped when a collection was last asked for
}

// NewGuard watches a limit. One of 0 is never near.
func NewGuard(limit Limit) *Guard {
	return &Guard{limit: limit, measure: measure, collect: runtime.GC}
}

// Warning says that a process has passed a part of its limit.
type Warning struct {
	// Percent is the level that was passed: 80 or 90.
	Percent int64
	// Needed is what the process needs, and Limit what it may have.
	Needed int64
	Limit  Limit
}

// String writes the warning in one line, with what to do.
func (w Warning) String() string {
	return fmt.Sprintf("memory is over %d%% of its limit: %s are needed, the limit is %s; past it the process would be killed: %s before that",
		w.Percent, size(w.Needed), w.Limit, w.Limit.wayOut())
}

// Sample is to be called about once a second while the job runs. It returns a
// warning when the use passes a level, once until it has fallen clearly below.
func (g *Guard) Sample() (w Warning, passed bool) {
	if g.limit.Bytes <= 0 {
		return Warning{}, false
	}
	needed := g.measure().needed
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.told > 0 && needed < g.percent(levels[g.told-1]-rearm) {
		g.told--
	}
	for g.told < len(levels) && needed >= g.percent(levels[g.told]) {
		w, passed = Warning{levels[g.told], needed, g.limit}, true
		g.told++
	}
	return w, passed
}

// Loading is to be called every few thousand rows while a state is loaded, of
// which loaded of rows rows are in memory. It returns a [TooLargeError] once the
// state can't fit.
func (g *Guard) Loading(at epoch.At, state string, loaded, rows int64) error {
	if g.limit.Bytes <= 0 {
		return nil
	}
	now := g.measure()
	if now.needed < g.percent(full) && g.stale(now) {
		g.collect()
		now = g.measure()
	}
	if now.needed < g.percent(full) {
		return nil
	}
	return &TooLargeError{At: at, Loading: state, Loaded: loaded, Rows: rows, InUse: now.needed, Limit: g.limit}
}

// stale tells whether the figure of the last collection may be too old to rely
// on: so much is mapped that the process is about to be killed, if it isn't
// garbage. It says so once per percent that the use grows, since a collection of
// a large heap takes seconds.
func (g *Guard) stale(now use) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.mapped < g.percent(full) || now.mapped < g.collected+g.percent(1) {
		return false
	}
	g.collected = now.mapped
	return true
}

// percent is a part of the limit, in bytes.
func (g *Guard) percent(n int64) int64 { return g.limit.Bytes / 100 * n }
