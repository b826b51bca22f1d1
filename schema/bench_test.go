package schema_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/schema"
)

type spend struct {
	Orders, Cents int64
	VIP           bool
	Name          string
}

// appendSpend is what a person would write by hand.
func appendSpend(dst []byte, s *spend) []byte {
	dst = binary.AppendVarint(dst, s.Orders)
	dst = binary.AppendVarint(dst, s.Cents)
	if s.VIP {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(s.Name)))
	return append(dst, s.Name...)
}

func decodeSpend(src []byte, s *spend) ([]byte, error) {
	var n int
	if s.Orders, n = binary.Varint(src); n <= 0 {
		return nil, fmt.Errorf("orders")
	}
	src = src[n:]
	if s.Cents, n = binary.Varint(src); n <= 0 {
		return nil, fmt.Errorf("cents")
	}
	src = src[n:]
	if len(src) == 0 || src[0] > 1 {
		return nil, fmt.Errorf("vip")
	}
	s.VIP, src = src[0] == 1, src[1:]
	length, n := binary.Varint(src)
	if n <= 0 || uint64(length) > uint64(len(src)-n) {
		return nil, fmt.Errorf("name")
	}
	s.Name = string(src[n : n+int(length)])
	return src[n+int(length):], nil
}

var sample = spend{Orders: 17, Cents: 123_456, VIP: true, Name: "Ada Lovelace"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkAppend(b *testing.B) {
	spends := must(schema.Of[spend]("spend"))
	buf := make([]byte, 0, 256)
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = appendSpend(buf[:0], &sample)
		}
	})
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = spends.Append(buf[:0], &sample)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	spends := must(schema.Of[spend]("spend"))
	older := must(schema.Of[struct {
		Gone   int32
		Cents  int32
		Orders int64
		Name   string
	}]("spend"))
	reader := must(spends.Reader(older.Schema()))
	data := appendSpend(nil, &sample)
	old := must(older.Append(nil, &struct {
		Gone   int32
		Cents  int32
		Orders int64
		Name   string
	}{5, 123_456, 17, "Ada Lovelace"}))
	var v spend
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = decodeSpend(data, &v)
		}
	})
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = spends.Decode(data, &v)
		}
	})
	b.Run("resolved", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = reader.Decode(old, &v)
		}
	})
}

func BenchmarkKey(b *testing.B) {
	buf := make([]byte, 0, 256)
	names, numbers := must(schema.KeyOf[string]("key")), must(schema.KeyOf[int64]("key"))
	type place struct {
		Carrier string
		Airport [3]byte
	}
	places := must(schema.KeyOf[place]("key"))
	b.Run("string", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = names.Append(buf[:0], "user-123456")
		}
	})
	b.Run("int64", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = numbers.Append(buf[:0], 123_456)
		}
	})
	b.Run("struct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = places.Append(buf[:0], place{"UA", [3]byte{'J', 'F', 'K'}})
		}
	})
	b.Run("decode", func(b *testing.B) {
		data := names.Append(nil, "user-123456")
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = names.Decode(data)
		}
	})
}

type basket struct {
	Items  []item
	Tags   map[string]int64
	Before *item
	At     time.Time
}

type item struct {
	Name  string
	Cents int64
}

func BenchmarkNested(b *testing.B) {
	baskets := must(schema.Of[basket]("basket"))
	v := basket{Items: make([]item, 10), Tags: map[string]int64{}, Before: &item{"x", 1}, At: time.Unix(1e9, 0)}
	for i := range v.Items {
		v.Items[i] = item{strings.Repeat("n", i), int64(i) << i}
		v.Tags[strings.Repeat("t", i)] = int64(i)
	}
	data := must(baskets.Append(nil, &v))
	skip, toJSON := schema.Skipper(baskets.Schema()), schema.JSON(baskets.Schema())
	copyOf, _, err := schema.Copier[basket]()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"append": func() { buf, _ = baskets.Append(buf[:0], &v) },
		"decode": func() { var w basket; _, _ = baskets.Decode(data, &w) },
		"skip":   func() { _, _ = skip(data) },
		"json":   func() { buf, _, _ = toJSON(buf[:0], data) },
		"copy":   func() { _ = copyOf(v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
