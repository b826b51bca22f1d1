package schema

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// The enums of the pairs, which generate.py knows too.
type (
	enumABC string
	enumCA  string
	enumBDA string
)

func (enumABC) Symbols() []string     { return []string{"A", "B", "C"} }
func (enumCA) Symbols() []string      { return []string{"C", "A"} }
func (enumBDA) Symbols() []string     { return []string{"B", "D", "A"} }
func (enumBDA) DefaultSymbol() string { return "D" }

var enumTypes = []reflect.Type{reflect.TypeFor[enumABC](), reflect.TypeFor[enumCA](), reflect.TypeFor[enumBDA]()}

// goType returns a Go type that has a schema, and what its field's tag has to say.
func goType(s *Schema, def string) (t reflect.Type, tag string) {
	if inner, nullable := s.NonNull(); nullable {
		t, tag = goType(inner, "0")
		if t == ratType {
			return ratPointer, tag
		}
		return reflect.PointerTo(t), tag
	}
	tag = ",default=" + strings.Trim(def, `"`)
	switch {
	case s.logical == LogicalDecimal:
		return ratType, fmt.Sprintf(",precision=%d,scale=%d", s.precision, s.scale)
	case s.logical == LogicalTimestamp && def == strconv.FormatInt(time.Time{}.UnixMicro(), 10):
		return timeType, ""
	case s.logical == LogicalTimestamp:
		return instantType, ""
	case s.logical == LogicalDuration:
		return durationType, ""
	}
	switch s.kind {
	case KindBoolean:
		return reflect.TypeFor[bool](), tag
	case KindInt:
		return reflect.TypeFor[int32](), tag
	case KindLong:
		return reflect.TypeFor[int64](), tag
	case KindFloat:
		return reflect.TypeFor[float32](), tag
	case KindDouble:
		return reflect.TypeFor[float64](), tag
	case KindString:
		return reflect.TypeFor[string](), tag
	case KindBytes:
		return reflect.TypeFor[[]byte](), tag
	case KindFixed:
		return reflect.ArrayOf(s.size, reflect.TypeFor[byte]()), ""
	case KindEnum:
		i := slices.IndexFunc(enumTypes, func(t reflect.Type) bool {
			return slices.Equal(reflect.Zero(t).Interface().(interface{ Symbols() []string }).Symbols(), s.symbols)
		})
		return enumTypes[i], ""
	case KindArray:
		t, _ = goType(s.element, "0")
		return reflect.SliceOf(t), ""
	case KindMap:
		t, _ = goType(s.element, "0")
		return reflect.MapOf(reflect.TypeFor[string](), t), ""
	}
	var fields []reflect.StructField
	for i, f := range s.fields {
		t, more := goType(f.Type, f.Default)
		if f.Type.kind == KindUnion {
			more = strings.Split(more, ",default=")[0] // null
		}
		text := f.Name
		for _, a := range f.Aliases {
			text += ",alias=" + a
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: t, Tag: reflect.StructTag("avro:" + strconv.Quote(text+more))})
	}
	return reflect.StructOf(fields), ""
}

// agreement is a line of the pairs.
type agreement struct {
	writer, reader *Schema
	values         [][2][]byte // written, and read; nil: refused
}

func agreements(t *testing.T) (all []agreement) {
	file, err := os.Open("testdata/agreement/pairs.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unzipped)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var parts [3]jsontext.Value
		var values [][2]*string
		err := errors.Join(json.Unmarshal(lines.Bytes(), &parts), json.Unmarshal(parts[2], &values))
		writer, writerErr := Parse(parts[0])
		reader, readerErr := Parse(parts[1])
		if err := errors.Join(err, writerErr, readerErr); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		a := agreement{writer: writer, reader: reader}
		for _, v := range values {
			var pair [2][]byte
			for i, text := range v {
				if text != nil {
					raw, err := hex.DecodeString(*text)
					if err != nil {
						t.Fatal(err)
					}
					pair[i] = append([]byte{}, raw...)
				}
			}
			a.values = append(a.values, pair)
		}
		all = append(all, a)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAgreement reads what fastavro wrote with one schema by the rules of another,
// and compares with what fastavro reads.
func TestAgreement(t *testing.T) {
	var pairs, agreed, refused, only, theirs, fails int
	for line, a := range agreements(t) {
		typ, _ := goType(a.reader, "")
		n, err := build(typ, "row", false)
		if err != nil {
			t.Fatalf("line %d: %v", line+1, err)
		}
		if d := Differences(a.reader, n.schema); len(d) > 0 {
			t.Fatalf("line %d: the Go type of the reader differs from its schema: %v", line+1, d)
		}
		found := Differences(a.writer, n.schema)
		resolves, mayFail, narrows := true, false, true
		for _, d := range found {
			resolves = resolves && d.Resolves
			mayFail = mayFail || d.MayFail
			narrows = narrows && (d.Resolves || d.Narrows)
		}
		both := false
		for i, v := range a.values {
			where := fmt.Sprintf("line %d, value %d (%x)\nwriter %s\nreader %s\ndifferences %v", line+1, i, v[0], a.writer, a.reader, found)
			if !resolves && !narrows {
				if v[1] != nil {
					theirs++
				} else {
					refused++
				}
				continue
			}
			d := newNarrowingDecoder(a.writer, n, func(string) bool { return true })
			got, err := again(d, n, v[0])
			if resolves {
				plain, plainErr := again(newDecoder(a.writer, n), n, v[0])
				if plainErr != nil && !mayFail {
					t.Fatalf("%s\n%v, though every value should be carried over", where, plainErr)
				}
				if plainErr == nil && !bytes.Equal(plain, got) {
					t.Fatalf("%s\nby consent %x (%v), without %x", where, got, err, plain)
				}
			}
			var value *ValueError
			switch {
			case err != nil && !errors.As(err, &value):
				t.Fatalf("%s\n%v", where, err)
			case err != nil && v[1] != nil && stricter(err.Error()):
				fails++
			case err != nil && v[1] != nil:
				t.Errorf("%s\n%v\nfastavro reads %x", where, err, v[1])
			case err != nil:
				refused++
			case v[1] == nil:
				only++
			default:
				want, err := again(newDecoder(n.schema, n), n, v[1])
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s\nread     %x\nfastavro %x (%v)", where, got, want, err)
				}
				agreed++
				both = true
			}
		}
		if both {
			pairs++
		}
	}
	t.Logf("%d values of %d pairs agree; both refuse %d, fastavro alone %d, this package alone %d by their schemas and %d by the values", agreed, pairs, refused, only, theirs, fails)
	if pairs < 1000 {
		t.Errorf("of %d pairs only something is read by both, expected 1,000 at least", pairs)
	}
}

// stricter tells whether an error is one that fastavro does without: it lets a
// decimal have more digits than it may, and takes a plain number of a union for
// whatever the reader means by one.
func stricter(reason string) bool {
	if strings.Contains(reason, "more digits than a decimal") {
		return true
	}
	_, where, union := strings.Cut(reason, " was written where ")
	return union && (strings.Contains(where, "timestamp") || strings.Contains(where, "duration") || strings.Contains(where, "decimal"))
}

// again reads a value, and writes what it is then.
func again(d *decoder, n *node, data []byte) ([]byte, error) {
	v := reflect.New(n.typ).UnsafePointer()
	end, err := d.run(data, 0, v, 0)
	if err != nil {
		return nil, err
	}
	if end != len(data) {
		return nil, fmt.Errorf("%d bytes of %d were read", end, len(data))
	}
	return newEncoder(n).run(nil, unsafe.Pointer(v), 0)
}
