package faultenv

import (
	"io/fs"
	"sync"

	"github.com/sluicestream/sluice/env"
)

// Call is one call of the environment.
type Call struct {
	// N counts the calls of the environment, Nth those of the same name. Both
	// begin at 1.
	N, Nth int
	// Name is the call and the kind of thing that it is about, such as "link
	// manifest", "write sink rows" or "timer".
	Name string
	// Path is the file's; of a link and a rename the new one. The clock and
	// randomness have none.
	Path string
}

// Fault is what becomes of a call. The zero value lets it be.
type Fault struct {
	// Err is what the call answers; nil lets it be carried out. The clock's calls
	// have no error, so theirs pass. A write that fails has written half.
	Err error
	// Done has the call carried out all the same: only its reply is lost.
	Done bool
}

// Hooks are asked before, and told after, each call. They may do what they like
// meanwhile, such as killing the process. Nil ones are left out.
type Hooks struct {
	Before func(Call) Fault
	After  func(Call)
}

// Wrap returns the environment with hooks around its calls, which may come from
// many goroutines at once. Places give the files' kinds.
func Wrap(e *env.Env, p Places, h Hooks) *env.Env {
	w := &world{env: e, places: p, hooks: h, nth: map[string]int{}, made: map[string]string{}}
	return &env.Env{Clock: clock{w}, Random: random{w}, Files: files{w}}
}

// world is an environment with hooks.
type world struct {
	env    *env.Env
	places Places
	hooks  Hooks

	mu   sync.Mutex
	n    int
	nth  map[string]int
	made map[string]string // temporary files with a second name: the kind of that
}

// do carries out a call between the hooks.
func (w *world) do(operation, path string, call func() error) error {
	c := w.count(operation, path)
	f := Fault{}
	if w.hooks.Before != nil {
		f = w.hooks.Before(c)
	}
	if f.Err != nil {
		if f.Done {
			_ = call() // whatever it says is lost
		}
		return &fs.PathError{Op: operation, Path: path, Err: f.Err}
	}
	err := call()
	if w.hooks.After != nil {
		w.hooks.After(c)
	}
	return err
}

// count names a call and counts it.
func (w *world) count(operation, path string) Call {
	name := operation
	if path != "" {
		name += " " + w.kind(path)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	w.nth[name]++
	return Call{N: w.n, Nth: w.nth[name], Name: name, Path: path}
}

// kind is the kind of a file. What a temporary file was to be is known once it
// has its name.
func (w *world) kind(path string) string {
	kind := w.places.kind(path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if made, ok := w.made[path]; ok {
		kind += " of " + made
	}
	return kind
}

// named notes that a temporary file has got its name.
func (w *world) named(old, new string) {
	kind := w.places.kind(new)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[old] = kind
}

// forget notes that a name is free again.
func (w *world) forget(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.made, path)
}
