package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// Box is an epoch's outbox for one sink, for being read.
type Box struct {
	// Key and Row are the schemas that the rows were frozen with. Key is nil for
	// a stream's rows, both are if there are no rows.
	Key, Row *schema.Schema

	st      store.Store
	job     string
	objects []epoch.Object
}

// Open looks at the head of an outbox.
func Open(ctx context.Context, st store.Store, job string, objects []epoch.Object) (*Box, error) {
	b := &Box{st: st, job: job, objects: objects}
	if len(objects) == 0 {
		return b, nil
	}
	err := b.file(ctx, objects[0], func(r *avrofile.Reader) error {
		foreign := &avrofile.FormatError{Expected: "an outbox's schema", Found: r.Schema()}
		s, err := schema.Parse([]byte(r.Schema()))
		if err != nil {
			return foreign
		}
		fields := s.Fields()
		if len(fields) != 5 || fields[2].Name != "key" || fields[3].Name != "row" {
			return foreign
		}
		if !fields[2].Type.Equal(schema.Null()) {
			b.Key = fields[2].Type
		}
		b.Row, _ = fields[3].Type.NonNull()
		return nil
	})
	return b, err
}

// file opens one object and calls read. If the object isn't there, or is no
// Avro file, the error is an *[epoch.DamagedError].
func (b *Box) file(ctx context.Context, o epoch.Object, read func(r *avrofile.Reader) error) error {
	in, err := b.st.Open(ctx, b.job+"/"+o.Path)
	if errors.Is(err, store.ErrNotFound) {
		return b.damaged(o, "an outbox", "nothing")
	}
	if errors.Is(err, store.ErrNoFile) {
		return b.damaged(o, "an outbox", "something that is no regular file")
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if in.Size() != o.Bytes {
		return b.damaged(o, fmt.Sprintf("%d bytes", o.Bytes), fmt.Sprintf("%d", in.Size()))
	}
	sum := sha256.New()
	all := io.TeeReader(io.NewSectionReader(in, 0, in.Size()), sum)
	r, err := avrofile.NewReader(all)
	if err == nil {
		err = read(r)
	}
	var format *avrofile.FormatError
	if errors.As(err, &format) {
		return b.damaged(o, "an Avro file", err.Error())
	}
	if err != nil {
		return err
	}
	if r.Offset() < in.Size() {
		return nil // only its head was asked for
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != o.SHA256 {
		return b.damaged(o, "sha256 "+o.SHA256, found)
	}
	return nil
}

func (b *Box) damaged(o epoch.Object, expected, found string) error {
	return &epoch.DamagedError{At: epoch.At{Job: b.job}, Object: b.job + "/" + o.Path, Expected: expected, Found: found}
}

// errStopped ends a file when the caller wants no more rows.
var errStopped = errors.New("stopped")

// Rows goes through the rows. A row's bytes hold until the next. A damaged
// object ends them with an error, possibly after some of its rows: whoever
// writes them must be able to take them back.
func (b *Box) Rows(ctx context.Context) iter.Seq2[connector.Row, error] {
	return func(yield func(connector.Row, error) bool) {
		p, err := newParser(b.Key, b.Row)
		if err != nil {
			yield(connector.Row{}, err)
			return
		}
		for _, o := range b.objects {
			err := b.file(ctx, o, func(r *avrofile.Reader) error { return p.rows(r, yield) })
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(connector.Row{}, err)
				return
			}
		}
	}
}

// parser takes an outbox's records apart.
type parser struct {
	key, row func(src []byte) (int, error)
	block    []byte
}

func newParser(key, row *schema.Schema) (p parser, err error) {
	p.key = func([]byte) (int, error) { return 0, nil }
	p.row = p.key
	if key != nil {
		p.key = schema.Skipper(key)
	}
	if row != nil {
		p.row = schema.Skipper(row)
	}
	return p, nil
}

func (p *parser) rows(r *avrofile.Reader, yield func(connector.Row, error) bool) error {
	for {
		block, records, err := r.Next(p.block)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.block = block
		for range records {
			row, n, err := p.parse(block)
			if err != nil {
				return &avrofile.FormatError{Offset: r.Offset(), Expected: "outbox records", Found: "a block with " + err.Error()}
			}
			block = block[n:]
			if !yield(row, nil) {
				return errStopped
			}
		}
	}
}

var errRecord = errors.New("a record that is no outbox's")

func (p *parser) parse(src []byte) (row connector.Row, n int, err error) {
	op, a := binary.Varint(src)
	if a <= 0 || op < 0 || op > int64(connector.Delete) {
		return row, 0, errRecord
	}
	slot, b := binary.Varint(src[a:])
	if b <= 0 || slot < 0 || slot > 65535 {
		return row, 0, errRecord
	}
	row.Op, row.Slot, n = connector.Op(op), uint16(slot), a+b
	k, err := p.key(src[n:])
	if err != nil {
		return row, 0, err
	}
	if k > 0 {
		row.Key = src[n : n+k]
	}
	n += k
	if row.Row, n, err = branch(src, n, p.row); err != nil {
		return row, 0, err
	}
	row.Wire, n, err = branch(src, n, skipBytes)
	if row.Wire != nil {
		_, length := binary.Varint(row.Wire)
		row.Wire = row.Wire[length:]
	}
	return row, n, err
}

// branch reads a nullable value that begins at n.
func branch(src []byte, n int, skip func([]byte) (int, error)) ([]byte, int, error) {
	if n >= len(src) || src[n] != 0 && src[n] != 2 {
		return nil, 0, errRecord
	}
	if src[n] == 0 {
		return nil, n + 1, nil
	}
	size, err := skip(src[n+1:])
	if err != nil {
		return nil, 0, err
	}
	return src[n+1 : n+1+size], n + 1 + size, nil
}

func skipBytes(src []byte) (int, error) {
	length, n := binary.Varint(src)
	if n <= 0 || length < 0 || length > int64(len(src)-n) {
		return 0, errRecord
	}
	return n + int(length), nil
}
