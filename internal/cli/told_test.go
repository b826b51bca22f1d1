package cli

import (
	"errors"
	"fmt"
	"testing"
)

// listError has a list to tell.
type listError struct{ reasons []string }

func (e *listError) Error() string     { return "spend: refused: " + fmt.Sprint(e.reasons) }
func (e *listError) Summary() string   { return "spend: refused. Nothing was changed." }
func (e *listError) Details() []string { return e.reasons }

// An error with a list is told as one, whatever is around it.
func TestTold(t *testing.T) {
	list := &listError{[]string{"state a: gone", "state b: gone\x1b[1m"}}
	const below = "\n  state a: gone\n  state b: gone\\x1b[1m"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no list":                 {errors.New("one\ntwo"), "one; two"},
		"the list itself":         {list, "spend: refused. Nothing was changed." + below},
		"with text before it":     {fmt.Errorf("opening sink out: %w", list), "opening sink out: spend: refused. Nothing was changed." + below},
		"with text around it":     {fmt.Errorf("one (%w)\nmore", fmt.Errorf("two: %w", list)), "one (two: spend: refused. Nothing was changed.); more" + below},
		"in a text that lacks it": {&quiet{list}, "it can't start" + below},
	} {
		if got := told(c.err); got != c.want {
			t.Errorf("%s:\n%q\nexpected\n%q", name, got, c.want)
		}
	}
}

// quiet is an error that doesn't say what its cause says.
type quiet struct{ cause error }

func (*quiet) Error() string   { return "it can't start" }
func (e *quiet) Unwrap() error { return e.cause }
