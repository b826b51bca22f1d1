package tabular

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicestream/sluice/schema"
)

var formats = []Format{Avro, JSONL, CSV, Parquet}

// color is an enum.
type color string

// Symbols tells the enum's symbols.
func (color) Symbols() []string { return []string{"red", "green", "blue"} }

type shopKey struct {
	City   string
	Number int32
	Code   uint64
	Open   bool
	Tag    [4]byte
}

type leafValueOfAll struct {
	Name  string
	Price *big.Rat `avro:"price,precision=12,scale=2"`
}

type everything struct {
	B    bool
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	F32  float32
	F64  float64
	Text string
	Raw  []byte
	Fix  [3]byte
	At   time.Time
	For  time.Duration
	Rat  *big.Rat `avro:"rat,precision=20,scale=3"`
	Col  color
	Ptr  *int64
	Sub  leafValueOfAll
	PSub *leafValueOfAll
	List []int32
	Subs []leafValueOfAll
	Deep [][]string
	Maps map[string]int64
	MapL map[string][]leafValueOfAll
	Ints map[int64]string
	Keys map[shopKey]int32
	Ptrs []*string
	Last string
}

func randomText(r *rand.Rand) string {
	letters := []rune("ab ,\"\n\r\té日'\\{}[]:")
	out := make([]rune, r.IntN(8))
	for i := range out {
		out[i] = letters[r.IntN(len(letters))]
	}
	return string(out)
}

func randomRat(r *rand.Rand, scale int64, limit int64) *big.Rat {
	return big.NewRat(r.Int64N(2*limit)-limit, scale)
}

func randomLeaf(r *rand.Rand) leafValueOfAll {
	return leafValueOfAll{randomText(r), randomRat(r, 100, 1e11)}
}

func randomKey(r *rand.Rand) shopKey {
	return shopKey{randomText(r), int32(r.Uint32()), r.Uint64(), r.IntN(2) == 0, [4]byte{byte(r.Uint32()), 1, 2, byte(r.Uint32())}}
}

func some[T any](r *rand.Rand, one func() T) []T {
	var out []T
	for range r.IntN(4) {
		out = append(out, one())
	}
	return out
}

func randomEverything(r *rand.Rand) everything {
	text := func() string { return randomText(r) }
	leaf := func() leafValueOfAll { return randomLeaf(r) }
	v := everything{
		B: r.IntN(2) == 0, I8: int8(r.Uint32()), I16: int16(r.Uint32()), I32: int32(r.Uint32()), I64: int64(r.Uint64()),
		U8: uint8(r.Uint32()), U16: uint16(r.Uint32()), U32: r.Uint32(), U64: r.Uint64(),
		F32: float32(r.NormFloat64()), F64: r.NormFloat64() * 1e30, Text: text(), Raw: []byte(text()), Fix: [3]byte{1, byte(r.Uint32()), 0},
		At: time.UnixMicro(r.Int64N(1 << 52)).UTC(), For: time.Duration(r.Int64()), Rat: randomRat(r, 1000, 1e18), Col: color([]string{"red", "green", "blue"}[r.IntN(3)]),
		Sub: leaf(), List: some(r, func() int32 { return int32(r.Uint32()) }), Subs: some(r, leaf),
		Deep: some(r, func() []string { return some(r, text) }), Maps: map[string]int64{}, MapL: map[string][]leafValueOfAll{},
		Ints: map[int64]string{}, Keys: map[shopKey]int32{}, Last: text(),
	}
	if r.IntN(2) == 0 {
		n := r.Int64()
		v.Ptr = &n
	}
	if r.IntN(2) == 0 {
		l := leaf()
		v.PSub = &l
	}
	v.Ptrs = some(r, func() *string {
		if r.IntN(2) == 0 {
			return nil
		}
		s := text()
		return &s
	})
	for range r.IntN(4) {
		v.Maps[text()] = r.Int64()
		v.MapL[text()] = some(r, leaf)
		v.Ints[r.Int64()-1<<62] = text()
		v.Keys[randomKey(r)] = int32(r.Uint32())
	}
	return v
}

// rowsOf are rows as Write takes them.
func rowsOf(rows [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func written(t testing.TB, f Format, l Layout, rows [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := Write(t.Context(), &out, f, l, WriteOptions{Workers: 3}, rowsOf(rows))
	if err != nil || n != int64(len(rows)) {
		t.Fatalf("%s: %d rows written of %d: %v", f, n, len(rows), err)
	}
	return out.Bytes()
}

func read(data []byte, f Format, l Layout, o ReadOptions) (rows [][]byte, err error) {
	r, err := Open(bytes.NewReader(data), int64(len(data)), "file", f, l, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, bytes.Clone(row))
	}
}

func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	key, err := schema.KeyOf[shopKey]("key")
	if err != nil {
		t.Fatal(err)
	}
	value, err := schema.Of[everything]("all")
	if err != nil {
		t.Fatal(err)
	}
	l := Entries("all", key.Schema(), nil, value.Schema())
	var rows [][]byte
	for range 300 {
		v := randomEverything(r)
		row, err := value.Append(key.Append(nil, randomKey(r)), &v)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	canonical := func(row []byte) []byte {
		k, rest, err := key.Decode(row)
		if err != nil {
			t.Fatal(err)
		}
		var v everything
		if rest, err = value.Decode(rest, &v); err != nil || len(rest) > 0 {
			t.Fatal(err, len(rest))
		}
		out, err := value.Append(key.Append(nil, k), &v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			got, err := read(written(t, f, l, rows), f, l, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(rows) {
				t.Fatalf("%d rows, expected %d", len(got), len(rows))
			}
			render := schema.JSON(l.Schema())
			for i := range rows {
				if back := canonical(got[i]); !bytes.Equal(back, rows[i]) {
					was, _, _ := render(nil, rows[i])
					is, _, _ := render(nil, back)
					t.Fatalf("row %d: %s\nbecame %s", i, was, is)
				}
			}
		})
	}
}

// TestManyChunks sees that rows keep their order over many chunks and workers.
func TestManyChunks(t *testing.T) {
	l := Entries("n", schema.Long(), nil, schema.String())
	var rows [][]byte
	for i := range 50_000 {
		rows = append(rows, appendText(appendLong(nil, int64(i)), fmt.Sprintf("value %d", i)))
	}
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			got, err := read(written(t, f, l, rows), f, l, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(rows) {
				t.Fatalf("%d rows", len(got))
			}
			for i := range got {
				if !bytes.Equal(got[i], rows[i]) {
					t.Fatalf("row %d is %q", i, got[i])
				}
			}
		})
	}
}

// TestWriteStops sees that an error of the rows, of the writer, or of the context
// ends it, and the goroutines with it.
func TestWriteStops(t *testing.T) {
	l := Entries("n", schema.Long(), nil, schema.String())
	row := appendText(appendLong(nil, 1), string(make([]byte, 1000)))
	endless := func(yield func([]byte, error) bool) {
		for yield(row, nil) {
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, io.Discard, Avro, l, WriteOptions{Workers: 2}, endless); err != context.Canceled {
		t.Errorf("a context that has ended gives %v", err)
	}
	if _, err := Write(t.Context(), full{}, JSONL, l, WriteOptions{Workers: 2}, endless); err != io.ErrShortWrite {
		t.Errorf("a full disk gives %v", err)
	}
	if _, err := Write(t.Context(), io.Discard, CSV, l, WriteOptions{Workers: 2}, func(yield func([]byte, error) bool) { yield(nil, io.ErrClosedPipe) }); err != io.ErrClosedPipe {
		t.Errorf("rows that can't be read give %v", err)
	}
	if _, err := Write(t.Context(), io.Discard, JSONL, l, WriteOptions{Workers: 2}, rowsOf([][]byte{{1, 2}})); err == nil {
		t.Error("a row that is none was written")
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
