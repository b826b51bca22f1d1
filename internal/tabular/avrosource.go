package tabular

import (
	"fmt"

	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/schema"
)

// avroSource reads Avro object container files.
type avroSource struct {
	file    *avrofile.Reader
	record  resolvedRecord
	lacking []Absent
	block   []byte
	rest    []byte // of the block
	left    int    // rows in it
}

func newAvroSource(f File, l Layout, o ReadOptions) (source, error) {
	file, err := avrofile.NewReader(f)
	if err != nil {
		return nil, err
	}
	written, err := schema.Parse([]byte(file.Schema()))
	if err != nil {
		return nil, err
	}
	if written.Kind() != schema.KindRecord {
		return nil, fmt.Errorf("its values are of the type %s; expected records", written.Word())
	}
	fields := written.Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	picked, err := l.choose(names, o, false)
	if err != nil {
		return nil, err
	}
	s := &avroSource{file: file, lacking: picked.absent}
	r := &resolver{records: map[[2]*schema.Schema]*resolvedRecord{}}
	if _, err := r.fill(&s.record, fields, picked.columns, picked.from); err != nil {
		return nil, err
	}
	s.lacking = append(s.lacking, r.lacks.all...)
	return s, nil
}

func (s *avroSource) next(dst []byte) (_ []byte, err error) {
	for s.left == 0 {
		if len(s.rest) > 0 {
			return dst, fmt.Errorf("%d bytes behind the last row of a block", len(s.rest))
		}
		if s.block, s.left, err = s.file.Next(s.block); err != nil {
			return dst, err
		}
		s.rest = s.block
	}
	s.left--
	dst, s.rest, err = s.record.convert(dst, s.rest, 0)
	return dst, err
}

func (s *avroSource) line() int64      { return 0 }
func (s *avroSource) offset() int64    { return s.file.Offset() }
func (s *avroSource) absent() []Absent { return s.lacking }
func (s *avroSource) close() error     { return nil }
