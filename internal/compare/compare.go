package compare

import (
	"context"
	"errors"

	"github.com/sluicestream/sluice/internal/outbox"
	"github.com/sluicestream/sluice/schema"
)

// Comparison compares the outputs of two branches for one sink, bit by bit as they
// come. It is not safe for concurrent use.
type Comparison struct {
	job     string
	options Options
	result  Result
	begun   bool
	forms   map[string]*form
	pairs   map[[2]*form]*pair
	// opened is the outbox of each side that was opened last in the span.
	opened [2]opened
	spare  []*chunk
}

// New begins a comparison. The names of job and sink are for results and errors. A
// tolerance that is none is an [*OptionError].
func New(job, sink string, o Options) (*Comparison, error) {
	if err := o.check(job, sink); err != nil {
		return nil, err
	}
	return &Comparison{
		job: job, options: o.withDefaults(), result: Result{Sink: sink},
		forms: map[string]*form{}, pairs: map[[2]*form]*pair{},
	}, nil
}

// Run compares two sides up to the last position at which both have a boundary. The
// first step of each begins where the last Run has ended, in the first Run at any
// position that is the same for both; else the error is a [*GapError]. Damage is an
// [*epoch.DamagedError], a tolerance that a column has no use for an [*OptionError].
// After an error the result holds what was compared before the span that it is about,
// and Run may be called again from there.
func (c *Comparison) Run(ctx context.Context, old, now Side) error {
	sides := [2]Side{old, now}
	p := newPairing(c.result.Sink, sides)
	p.at, p.begun = c.result.To, c.begun
	defer p.close()
	for {
		s, err := p.span()
		if s == nil || err != nil {
			return err
		}
		if err := c.span(ctx, sides, s); err != nil {
			return err
		}
		if !c.begun {
			c.begun, c.result.After = true, s.after
		}
		c.result.To = s.to
	}
}

// Result is what has been compared so far.
func (c *Comparison) Result() Result { return c.result.clone() }

// untold says why a span can't be compared.
type untold string

// Error implements error.
func (u untold) Error() string { return string(u) }

// The reasons.
const (
	tooMany     untold = "too many rows to tell: what is not in one order needs more memory than is allowed"
	tooLong     untold = "too many epochs to tell: one side took more in one step than are compared at once"
	kindsDiffer untold = "one side has a table's rows, the other a stream's"
	keysDiffer  untold = "the keys have another schema: no key of one side is any of the other's"
	formsDiffer untold = "the rows' schema changes among epochs that the other side took in one step"
)

// span compares one span and adds what comes of it to the result.
func (c *Comparison) span(ctx context.Context, sides [2]Side, s *span) error {
	if s.rows == [2]int64{} {
		return nil
	}
	if len(c.forms) > maxForms {
		clear(c.forms)
		clear(c.pairs)
	}
	c.opened = [2]opened{}
	t := &tally{c: c, span: s}
	err := c.compare(ctx, sides, s, t)
	var why untold
	if errors.As(err, &why) {
		c.result.addReason(why.Error())
		t = &tally{Counts: Counts{Untold: 1, UntoldOld: s.rows[oldSide], UntoldNew: s.rows[newSide]}}
	} else if err != nil {
		return err
	}
	c.result.Counts = c.result.Plus(t.Counts)
	c.result.Samples = append(c.result.Samples, t.samples...)
	for _, column := range t.columns {
		c.result.addColumn(column.Column, column.Rows)
	}
	return nil
}

func (c *Comparison) compare(ctx context.Context, sides [2]Side, s *span, t *tally) error {
	if s.long {
		return tooLong
	}
	if s.sameBytes() {
		t.Equal += s.rows[oldSide]
		return nil
	}
	// The first outboxes say what is compared.
	var first [2]*outbox.Box
	for side, steps := range s.steps {
		if len(steps) == 0 {
			continue
		}
		o, err := c.open(ctx, sides, side, steps[0])
		if err != nil {
			return err
		}
		first[side], t.forms[side] = o.box, o.form
	}
	some := first[oldSide]
	if some == nil {
		some = first[newSide]
	}
	if some.Key != nil {
		return (&tableSpan{c: c, sides: sides, span: s, tally: t, key: some.Key}).run(ctx)
	}
	if now := first[newSide]; now != nil && now.Key != nil {
		return kindsDiffer
	}
	return c.stream(ctx, sides, s, t)
}

// stream compares a span of a stream.
func (c *Comparison) stream(ctx context.Context, sides [2]Side, s *span, t *tally) error {
	var from [2]source
	for side := range from {
		from[side] = &sequence{steps: s.steps[side], open: func(step Step) (*reading, error) {
			o, err := c.open(ctx, sides, side, step)
			switch {
			case err != nil:
				return nil, err
			case o.box.Key != nil:
				return nil, kindsDiffer
			case o.form != t.forms[side] && t.forms[1-side] != nil:
				return nil, formsDiffer
			}
			return c.read(ctx, o), nil
		}}
		defer from[side].close()
	}
	if s.linedUp() || t.forms[oldSide] == nil || t.forms[newSide] == nil {
		return t.inOrder(ctx, from)
	}
	return t.asMultiset(ctx, from)
}

// sequence gives the rows of a stream's steps, one step after the other.
type sequence struct {
	steps []Step
	open  func(step Step) (*reading, error)
	at    *reading // nil: none is open
}

func (s *sequence) next() (*row, error) {
	for {
		if s.at == nil {
			if len(s.steps) == 0 {
				return nil, nil
			}
			r, err := s.open(s.steps[0])
			if err != nil {
				return nil, err
			}
			s.at, s.steps = r, s.steps[1:]
		}
		r, err := s.at.next()
		if r != nil || err != nil {
			return r, err
		}
		s.close()
	}
}

func (s *sequence) close() {
	if s.at != nil {
		s.at.close()
		s.at = nil
	}
}

// maxForms bounds the schemas that are kept compiled from one span to the next: one for
// each version of the two branches meanwhile.
const maxForms = 64

// form returns the compiled schema of rows.
func (c *Comparison) form(s *schema.Schema) *form {
	f := c.forms[s.String()]
	if f == nil {
		f = newForm(s)
		c.forms[s.String()] = f
	}
	return f
}

// pair returns what compares rows of two schemas.
func (c *Comparison) pair(old, now *form) (*pair, error) {
	id := [2]*form{old, now}
	p := c.pairs[id]
	if p == nil {
		var err error
		if p, err = newPair(c.job, c.result.Sink, c.options.Columns, old, now, c.result.addSchema); err != nil {
			return nil, err
		}
		c.pairs[id] = p
	}
	return p, nil
}
