package codec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicestream/sluice/connector"
)

// ProtobufOption is a setting of [Protobuf]: [ProtoText] or [Registered].
type ProtobufOption interface{ setProtobuf(*protobufSettings) }

type protobufSettings struct {
	text         string
	registration *Registration
}

func (r Registration) setProtobuf(s *protobufSettings) { s.registration = &r }

type protobufOption func(*protobufSettings)

func (o protobufOption) setProtobuf(s *protobufSettings) { o(s) }

// ProtoText is the text of the .proto file that the message is generated from,
// for registering it as it is. Defaults to a text that is made of the message's
// descriptor, without comments, services and options that mean nothing for the
// encoding; a registry may hold it to be another schema than the file's.
func ProtoText(text string) ProtobufOption {
	return protobufOption(func(s *protobufSettings) { s.text = text })
}

// Message is the pointer to a generated Protobuf message of type M.
type Message[M any] interface {
	*M
	proto.Message
}

// Protobuf returns the codec of values of T whose bytes are Protobuf messages of
// type M:
//
//	codec.Protobuf(
//		func(m *shoppb.Order, o *Order) error { o.ID, o.Cents = m.GetId(), m.GetCents(); return nil },
//		func(o *Order, m *shoppb.Order) error { m.Id, m.Cents = o.ID, o.Cents; return nil })
//
// The records of a job are plain values: they are copied, compared and stored. A
// generated message is none, for it holds a lock and other things of its own;
// therefore from makes a value of a message, and to a message of a value. Each
// gets its second argument zero. The message that they get is used again, but what
// it points to is not: from may keep its slices and maps. Either may be nil, if
// nothing is decoded, or encoded. An error of from is the record's fault; both are
// called by several goroutines.
//
// Fields that M doesn't know are dropped. Messages may be nested 1,000 deep.
// Maps are encoded in the order of their keys.
func Protobuf[T, M any, P Message[M]](from func(m P, v *T) error, to func(v *T, m P) error, opts ...ProtobufOption) Codec[T] {
	c := &protobufCodec[T, M, P]{from: from, to: to}
	for _, o := range opts {
		o.setProtobuf(&c.protobufSettings)
	}
	c.message = P(new(M)).ProtoReflect().Descriptor()
	if c.registration == nil {
		return c
	}
	path := indexesOf(c.message)
	c.index = appendIndexes(nil, path)
	switch {
	case c.registration.registry == nil:
		c.fault = errors.New("codec.Registered got no registry")
	case c.text != "":
		if found := messagesOf(c.text)[string(c.index)]; found != string(c.message.FullName()) {
			c.fault = fmt.Errorf("codec.ProtoText: expected message %s in the place that it has in its file, found %s", c.message.FullName(), orNone(found))
		}
	}
	c.readers = newReaders(c.reader)
	c.enrolled = c.newEnrolled()
	return c
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return shortenTo(shownPath, printable(name))
}

type protobufCodec[T, M any, P Message[M]] struct {
	protobufSettings
	from     func(m P, v *T) error
	to       func(v *T, m P) error
	fault    error
	message  protoreflect.MessageDescriptor
	index    []byte // the message's place in its file, as frames have it
	readers  *readers[messageNames]
	enrolled *enrolled
}

func (c *protobufCodec[T, M, P]) newEnrolled() *enrolled {
	return &enrolled{Registration: c.registration, codec: c.Name(), record: string(c.message.FullName()), schema: func() (*Schema, error) {
		return protoSchema(c.message.ParentFile(), c.text)
	}}
}

// reader returns which messages a registered schema has.
func (c *protobufCodec[T, M, P]) reader(id uint32) (messageNames, error) {
	s, err := c.registration.fetch(c.Name(), id, FormatProtobuf)
	if err != nil {
		return nil, err
	}
	return messagesOf(s.Text), nil
}

func (c *protobufCodec[T, M, P]) Name() string { return "protobuf" }

func (c *protobufCodec[T, M, P]) Parameters() []connector.Parameter {
	p := []connector.Parameter{{Name: "message", Value: string(c.message.FullName())}}
	if c.registration != nil {
		p = append(p, c.registration.parameters()...)
	}
	return p
}

// Check implements [Checker].
func (c *protobufCodec[T, M, P]) Check() error {
	if c.fault != nil {
		return unfit(c.Name(), c.fault)
	}
	return nil
}

// Prepare implements [Preparer].
func (c *protobufCodec[T, M, P]) Prepare(ctx context.Context, use Use) error {
	if err := c.Check(); err != nil || c.enrolled == nil {
		return err
	}
	return c.enrolled.prepare(ctx, use)
}

func (c *protobufCodec[T, M, P]) at(use Use) Codec[T] {
	if c.enrolled == nil {
		return c
	}
	other := *c
	other.enrolled = other.newEnrolled()
	other.enrolled.use = &use
	return &other
}

// maxMessageDepth bounds how deep messages are nested.
const maxMessageDepth = 1000

func (c *protobufCodec[T, M, P]) NewDecoder() func(src []byte, v *T) error {
	fault := c.fault
	if fault == nil && c.from == nil {
		fault = errors.New("it was made without the function from, so that nothing can be decoded")
	}
	if fault != nil {
		err := unfit(c.Name(), fault)
		return func([]byte, *T) error { return err }
	}
	m := P(new(M))
	options := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxMessageDepth}
	decode := func(src []byte, v *T) error {
		if err := options.Unmarshal(src, m); err != nil {
			return &connector.DecodeError{At: -1, Cause: fmt.Errorf("no message %s: %w", c.message.FullName(), &plainError{err})}
		}
		if err := c.from(m, v); err != nil {
			return c.notMade(err)
		}
		return nil
	}
	if c.readers == nil {
		return decode
	}
	unframe := c.unframe()
	return func(src []byte, v *T) error {
		src, err := unframe(src)
		if err != nil {
			return err
		}
		return decode(src, v)
	}
}

// notMade is the error of a message of which no value can be made.
func (c *protobufCodec[T, M, P]) notMade(err error) error {
	if _, ok := errors.AsType[*connector.DecodeError](err); ok || errors.Is(err, connector.ErrUnavailable) {
		return err
	}
	return &connector.DecodeError{At: -1, Cause: fmt.Errorf("message %s: %w", c.message.FullName(), err)}
}

// unframe returns a function that takes off what stands before a message, and
// checks that the message is of the type that is expected.
func (c *protobufCodec[T, M, P]) unframe() func(src []byte) ([]byte, error) {
	var lastID uint32
	var last []byte // the indexes of the last record
	seen := map[uint32]messageNames{}
	return func(src []byte) ([]byte, error) {
		id, err := readFrame(src)
		if err != nil {
			return nil, err
		}
		src = src[frameSize:]
		if last != nil && id == lastID && bytes.HasPrefix(src, last) {
			return src[len(last):], nil
		}
		path, size, err := readIndexes(src)
		if err != nil {
			return nil, &connector.DecodeError{At: frameSize, Cause: err}
		}
		names := seen[id]
		if names == nil {
			if names, err = c.readers.of(id); err != nil {
				return nil, err
			}
			if len(seen) == maxReaders {
				clear(seen)
			}
			seen[id] = names
		}
		if found := names[string(appendIndexes(nil, path))]; found != string(c.message.FullName()) {
			return nil, badSchema(id, fmt.Errorf("expected a message %s, found %s, whose place in the file is %v", c.message.FullName(), orNone(found), path))
		}
		last, lastID = append(last[:0:0], src[:size]...), id
		return src[size:], nil
	}
}

func (c *protobufCodec[T, M, P]) NewEncoder() func(dst []byte, v *T) ([]byte, error) {
	fault := c.fault
	if fault == nil && c.to == nil {
		fault = errors.New("it was made without the function to, so that nothing can be encoded")
	}
	if fault != nil {
		err := unfit(c.Name(), fault)
		return func(dst []byte, _ *T) ([]byte, error) { return dst, err }
	}
	m := P(new(M))
	options := proto.MarshalOptions{Deterministic: true}
	encode := func(dst []byte, v *T) ([]byte, error) {
		proto.Reset(m)
		err := c.to(v, m)
		if err == nil {
			var longer []byte
			if longer, err = options.MarshalAppend(dst, m); err == nil {
				return longer, nil
			}
			err = &plainError{err}
		}
		return dst, fmt.Errorf("no message %s can be made of %T: %w", c.message.FullName(), *v, err)
	}
	if c.enrolled == nil {
		return encode
	}
	var front []byte
	return func(dst []byte, v *T) ([]byte, error) {
		if front == nil {
			id, err := c.enrolled.first()
			if err != nil {
				return dst, err
			}
			front = append(appendFrame(nil, id), c.index...)
		}
		framed, err := encode(append(dst, front...), v)
		if err != nil {
			return dst, err
		}
		return framed, nil
	}
}

// plainError is an error of the Protobuf library, whose texts have other spaces
// from build to build: a dead letter's text must not depend on that.
type plainError struct{ cause error }

// Error implements error.
func (e *plainError) Error() string {
	return strings.TrimPrefix(strings.ReplaceAll(e.cause.Error(), "\u00a0", " "), "proto: ")
}

// Unwrap returns the cause.
func (e *plainError) Unwrap() error { return e.cause }
