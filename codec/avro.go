package codec

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/schema"
)

// AvroOption is a setting of [Avro]: [Writer], [Record] or [Registered].
type AvroOption interface{ setAvro(*avroSettings) }

type avroSettings struct {
	record       string
	writer       string
	registration *Registration
}

func (r Registration) setAvro(s *avroSettings) { s.registration = &r }

type avroOption func(*avroSettings)

func (o avroOption) setAvro(s *avroSettings) { o(s) }

// Writer tells with which schema, in Avro's JSON form, plain records were
// written. They are read by Avro's rules of resolution; nothing can be encoded.
// Defaults to the schema of the Go type.
func Writer(schemaJSON string) AvroOption {
	return avroOption(func(s *avroSettings) { s.writer = schemaJSON })
}

// Record is the full name of the Avro record that T becomes, such as
// "shop.Order". Defaults to the name of the Go type. Registries hold records of
// different names to be incompatible, so that a renamed Go type needs it.
func Record(name string) AvroOption {
	return avroOption(func(s *avroSettings) { s.record = name })
}

// Avro returns the codec of Avro's binary encoding. The schema is the one that
// package [github.com/sluicestream/sluice/schema] derives from T, so its tags
// count. Records that were written with another schema ([Writer], [Registered])
// are read by Avro's rules: fields are found by name or alias, what was not
// written gets its default, what has no field is passed over, numbers are
// widened; enums, arrays, maps and what may be null likewise. What resolves is
// worked out once for each schema, so that a record costs no more than one of
// T's own schema.
//
// The writer's schema may hold anything that T has no field for. Where T has
// one, what others write is read as package schema tells: times, dates, decimals
// and UUIDs in their various forms, and of a union the types that the Go type can
// hold. A record that holds another is a bad one. A schema that can't be read at
// all is told of by every path.
func Avro[T any](opts ...AvroOption) Codec[T] {
	c := &avroCodec[T]{}
	for _, o := range opts {
		o.setAvro(&c.avroSettings)
	}
	if c.record == "" {
		c.record = reflect.TypeFor[T]().Name()
	}
	c.fault = c.build()
	return c
}

type avroCodec[T any] struct {
	avroSettings
	fault    error
	values   *schema.Type[T]
	writes   *schema.Schema    // the writer's schema of plain records
	plain    *schema.Reader[T] // reads them
	readers  *readers[*schema.Reader[T]]
	enrolled *enrolled
}

func (c *avroCodec[T]) build() (err error) {
	t := reflect.TypeFor[T]()
	if c.record == "" {
		if t.Kind() == reflect.Struct {
			return fmt.Errorf("the type %v has no name for an Avro record: codec.Record gives it one", t)
		}
		c.record = "value"
	}
	if err := schema.CheckName(c.record); err != nil {
		return fmt.Errorf("the record's name: %w; codec.Record gives it another", err)
	}
	if c.values, err = schema.Of[T](c.record); err != nil {
		return err
	}
	if c.registration != nil {
		if c.writer != "" {
			return errors.New("codec.Writer and codec.Registered exclude each other: the registry knows the writers' schemas")
		}
		if c.registration.registry == nil {
			return errors.New("codec.Registered got no registry")
		}
		c.readers = newReaders(c.reader)
		c.enrolled = c.newEnrolled()
		return nil
	}
	c.writes = c.values.Schema()
	if c.writer != "" {
		if c.writes, err = schema.Parse([]byte(c.writer)); err != nil {
			return fmt.Errorf("codec.Writer: %w", err)
		}
	}
	c.plain, err = c.resolve(c.writes)
	return err
}

func (c *avroCodec[T]) newEnrolled() *enrolled {
	return &enrolled{Registration: c.registration, codec: c.Name(), record: c.record, schema: func() (*Schema, error) {
		return &Schema{Format: FormatAvro, Text: c.values.Schema().String()}, nil
	}}
}

// resolve returns what reads values of a writer's schema.
func (c *avroCodec[T]) resolve(writer *schema.Schema) (*schema.Reader[T], error) {
	r, err := c.values.Reader(writer)
	if unresolved, ok := errors.AsType[*schema.ResolveError](err); ok {
		return nil, &unresolvable{reader: c.record, writer: writer, differences: unresolved.Differences}
	}
	return r, err
}

// reader makes what reads values of a registered schema.
func (c *avroCodec[T]) reader(id uint32) (*schema.Reader[T], error) {
	s, err := c.registration.fetch(c.Name(), id, FormatAvro)
	if err != nil {
		return nil, err
	}
	writer, err := parseAvro(s)
	if err != nil {
		return nil, badSchema(id, errors.New(shortenTo(shownCause, err.Error()))) // some repeat a whole name
	}
	r, err := c.resolve(writer)
	if err != nil {
		return nil, badSchema(id, err)
	}
	return r, nil
}

func (c *avroCodec[T]) Name() string { return "avro" }

func (c *avroCodec[T]) Parameters() []connector.Parameter {
	p := []connector.Parameter{{Name: "record", Value: c.record}}
	if c.writes != nil && c.writer != "" {
		p = append(p, connector.Parameter{Name: "writer", Value: c.writes.String()})
	}
	if c.registration != nil {
		p = append(p, c.registration.parameters()...)
	}
	return p
}

// Check implements [Checker].
func (c *avroCodec[T]) Check() error {
	if c.fault != nil {
		return unfit(c.Name(), c.fault)
	}
	return nil
}

// Prepare implements [Preparer].
func (c *avroCodec[T]) Prepare(ctx context.Context, use Use) error {
	if err := c.Check(); err != nil || c.enrolled == nil {
		return err
	}
	return c.enrolled.prepare(ctx, use)
}

func (c *avroCodec[T]) at(use Use) Codec[T] {
	if c.enrolled == nil {
		return c
	}
	other := *c
	other.enrolled = other.newEnrolled()
	other.enrolled.use = &use
	return &other
}

func (c *avroCodec[T]) NewDecoder() func(src []byte, v *T) error {
	switch {
	case c.fault != nil:
		err := unfit(c.Name(), c.fault)
		return func([]byte, *T) error { return err }
	case c.readers == nil:
		return func(src []byte, v *T) error { return c.decode(c.plain, src, 0, v) }
	}
	var last *schema.Reader[T]
	var lastID uint32
	seen := map[uint32]*schema.Reader[T]{}
	return func(src []byte, v *T) error {
		id, err := readFrame(src)
		if err != nil {
			return err
		}
		if last == nil || id != lastID {
			r := seen[id]
			if r == nil {
				if r, err = c.readers.of(id); err != nil {
					return err
				}
				if len(seen) == maxReaders {
					clear(seen)
				}
				seen[id] = r
			}
			last, lastID = r, id
		}
		return c.decode(last, src[frameSize:], frameSize, v)
	}
}

// decode reads a whole record, which begins at a place in its bytes.
func (c *avroCodec[T]) decode(r *schema.Reader[T], src []byte, at int, v *T) error {
	rest, err := r.Decode(src, v)
	if err == nil && len(rest) == 0 {
		return nil
	}
	if err == nil {
		end := at + len(src) - len(rest)
		return &connector.DecodeError{At: int64(end), Cause: fmt.Errorf("the record ends at byte %d, and %d bytes follow it", end, len(rest))}
	}
	bad, ok := errors.AsType[*schema.ValueError](err)
	if !ok {
		return &connector.DecodeError{At: -1, Cause: err}
	}
	return &connector.DecodeError{Field: c.fieldOf(bad.Path), At: -1, Cause: errors.New(bad.Reason)}
}

// fieldOf is a path without the record's name in front.
func (c *avroCodec[T]) fieldOf(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, c.record), ".")
}

func (c *avroCodec[T]) NewEncoder() func(dst []byte, v *T) ([]byte, error) {
	fault := c.fault
	if fault == nil && c.writer != "" && !c.writes.Equal(c.values.Schema()) {
		fault = errors.New("codec.Writer tells how records are read: what is encoded has the schema of the Go type, so that it needs a codec of its own")
	}
	switch {
	case fault != nil:
		err := unfit(c.Name(), fault)
		return func(dst []byte, _ *T) ([]byte, error) { return dst, err }
	case c.enrolled == nil:
		return c.append
	}
	var id uint32
	known := false
	return func(dst []byte, v *T) ([]byte, error) {
		if !known {
			var err error
			if id, err = c.enrolled.first(); err != nil {
				return dst, err
			}
			known = true
		}
		framed, err := c.append(appendFrame(dst, id), v)
		if err != nil {
			return dst, err
		}
		return framed, nil
	}
}

func (c *avroCodec[T]) append(dst []byte, v *T) ([]byte, error) {
	longer, err := c.values.Append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("no Avro can be made of %T: %w", *v, err)
	}
	return longer, nil
}
