package window

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of parameters.
const (
	kindParameter     = "window"
	sizeParameter     = "size"
	slideParameter    = "slide"
	offsetParameter   = "offset"
	gapParameter      = "gap"
	countParameter    = "count"
	unitParameter     = "unit"
	zoneParameter     = "zone"
	functionParameter = "function"
	clockParameter    = "clock"
)

// Parameters are the definition as texts, by name: window (the kind) and clock of
// each, size, slide, gap, count, unit, zone and function of those that have them,
// offset where it isn't zero. Equal definitions have equal texts. Durations are
// written as Go does.
func (d *Definition) Parameters() map[string]string {
	texts := map[string]string{kindParameter: string(d.Kind), clockParameter: string(d.Clock)}
	length := func(name string, micros int64) { texts[name] = duration(micros).String() }
	switch d.Kind {
	case TumblingKind, SlidingKind:
		length(sizeParameter, d.Size)
	case HoppingKind:
		length(sizeParameter, d.Size)
		length(slideParameter, d.Slide)
	case SessionKind:
		length(gapParameter, d.Gap)
	case CalendarKind:
		texts[countParameter] = strconv.FormatInt(d.Count, 10)
		texts[unitParameter] = string(d.Unit)
		texts[zoneParameter] = d.Zone
	case CustomKind:
		texts[functionParameter] = d.Name
	}
	if d.Offset != 0 {
		length(offsetParameter, d.Offset)
	}
	return texts
}

// IsParameter tells whether the parameters of some windows have one of that name.
func IsParameter(name string) bool {
	switch name {
	case kindParameter, sizeParameter, slideParameter, offsetParameter, gapParameter, countParameter, unitParameter, zoneParameter, functionParameter, clockParameter:
		return true
	}
	return false
}

// HasEdges tells whether windows begin at instants that are the same whatever the records
// are; see [Boundary].
func (d *Definition) HasEdges() bool { return d.isFixed() || d.Kind == CalendarKind }

// Among is the definition whose parameters are among these; see [Parse].
func Among(parameters map[string]string) (*Definition, error) {
	parameters = maps.Clone(parameters)
	maps.DeleteFunc(parameters, func(name, _ string) bool { return !IsParameter(name) })
	return Parse(parameters)
}

// Equal tells whether both put each time into the same windows, as far as their
// parameters tell: of custom windows only the functions' names are compared.
func (d *Definition) Equal(other *Definition) bool {
	return maps.Equal(d.Parameters(), other.Parameters())
}

// Parse is the definition that has these parameters. Of custom windows it lacks the
// function, so that it isn't complete. An error names the parameter that is
// missing, unknown to the kind of window, or can't be read.
func Parse(parameters map[string]string) (*Definition, error) {
	p := &parser{left: maps.Clone(parameters)}
	kind := Kind(p.text(kindParameter))
	d, err := p.definition(kind)
	clock := Clock(p.text(clockParameter))
	switch {
	case p.err != nil:
		err = p.err
	case err != nil:
	case len(p.left) > 0:
		err = fmt.Errorf("%s windows have no %s", kind, strings.Join(slices.Sorted(maps.Keys(p.left)), ", "))
	case clock != EventTime && clock != ProcessingTime:
		err = fmt.Errorf("clock %q, and it has to be %s or %s", clock, EventTime, ProcessingTime)
	}
	if err != nil {
		return nil, fmt.Errorf("parameters of windows: %w", err)
	}
	return d.On(clock), nil
}

// parser takes parameters out, one by one; err is the first that is missing or can't
// be read. A definition that is made of such ones is of no account.
type parser struct {
	left map[string]string
	err  error
}

func (p *parser) definition(kind Kind) (*Definition, error) {
	switch kind {
	case TumblingKind:
		size, offset := p.length(sizeParameter), p.offset()
		return Tumbling(size, offset)
	case HoppingKind:
		size, slide, offset := p.length(sizeParameter), p.length(slideParameter), p.offset()
		return Hopping(size, slide, offset)
	case SlidingKind:
		size := p.length(sizeParameter)
		return Sliding(size)
	case SessionKind:
		gap := p.length(gapParameter)
		return Session(gap)
	case CalendarKind:
		count, unit, zone, offset := p.number(countParameter), Unit(p.text(unitParameter)), p.text(zoneParameter), p.offset()
		return Calendar(count, unit, zone, offset)
	case CustomKind:
		return &Definition{Kind: CustomKind, Name: p.text(functionParameter)}, nil
	}
	return nil, fmt.Errorf("kind %q isn't known", kind)
}

func (p *parser) text(name string) string {
	text := p.left[name]
	delete(p.left, name)
	if text == "" {
		p.fail(fmt.Errorf("there is no %s", name))
	}
	return text
}

func (p *parser) length(name string) time.Duration {
	text := p.text(name)
	length, err := time.ParseDuration(text)
	if err != nil {
		p.fail(fmt.Errorf("%s %q is no duration: %w", name, text, err))
	}
	return length
}

// offset is zero where none is given.
func (p *parser) offset() time.Duration {
	if _, ok := p.left[offsetParameter]; !ok {
		return 0
	}
	return p.length(offsetParameter)
}

func (p *parser) number(name string) int64 {
	text := p.text(name)
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.fail(fmt.Errorf("%s %q is no number: %w", name, text, err))
	}
	return number
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}
