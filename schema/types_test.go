package schema_test

import (
	"math"
	"math/big"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// tier is an enum.
type tier string

func (tier) Symbols() []string { return []string{"basic", "gold", "platinum"} }

// mood is an enum that may be left empty.
type mood string

func (*mood) Symbols() []string { return []string{"good", "", "bad"} }

type point struct {
	X int32
	Y string
}

type base struct {
	ID      string
	Created schema.Instant `avro:"created_at"`
}

// wide has a field of every form.
type wide struct {
	base    `avro:"-"`
	Base    point
	Bool    bool
	I8      int8
	I16     int16
	I32     int32
	I64     int64
	Int     int
	U8      uint8
	U16     uint16
	U32     uint32
	U64     uint64
	Uint    uint
	F32     float32
	F64     float64
	String  string
	Bytes   []byte
	Fixed   [4]byte
	Strings []string
	Points  []point
	Deep    [][]int16
	Array   [3]int64
	Counts  map[string]int64
	ByID    map[int32]point
	ByPoint map[point]string
	ByFixed map[[2]byte][]string
	Maybe   *string
	Point   *point
	Time    time.Time
	Took    time.Duration
	At      schema.Instant
	Price   *big.Rat `avro:"price,precision=20,scale=3"`
	Tier    tier
	Mood    mood
	Moods   map[string]*mood
	Self    *wide
	Others  []wide
}

var (
	genText    = rapid.StringN(0, 12, 40)
	genPoint   = rapid.Custom(func(t *rapid.T) point { return point{rapid.Int32().Draw(t, "x"), genText.Draw(t, "y")} })
	genInstant = rapid.Custom(func(t *rapid.T) schema.Instant {
		return schema.Instant(rapid.Int64Range(-math.MaxInt64/2, math.MaxInt64/2).Draw(t, "instant"))
	})
	genRat = rapid.Custom(func(t *rapid.T) *big.Rat {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		r := big.NewRat(rapid.Int64().Draw(t, "unscaled"), 1000)
		return r.Mul(r, big.NewRat(rapid.Int64Range(-10, 10).Draw(t, "factor"), 1))
	})
	genTier = rapid.SampledFrom([]tier{"basic", "gold", "platinum"})
	genMood = rapid.SampledFrom([]mood{"good", "", "bad"})
)

// genSlice yields nil or a slice of at least one: what reading gives back.
func genSlice[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] {
	return rapid.Map(rapid.SliceOfN(g, 0, 4), func(s []T) []T {
		if len(s) == 0 {
			return nil
		}
		return s
	})
}

func genWide(depth int) *rapid.Generator[wide] {
	return rapid.Custom(func(t *rapid.T) wide {
		w := wide{
			Base:    genPoint.Draw(t, "Base"),
			Bool:    rapid.Bool().Draw(t, "Bool"),
			I8:      rapid.Int8().Draw(t, "I8"),
			I16:     rapid.Int16().Draw(t, "I16"),
			I32:     rapid.Int32().Draw(t, "I32"),
			I64:     rapid.Int64().Draw(t, "I64"),
			Int:     rapid.Int().Draw(t, "Int"),
			U8:      rapid.Uint8().Draw(t, "U8"),
			U16:     rapid.Uint16().Draw(t, "U16"),
			U32:     rapid.Uint32().Draw(t, "U32"),
			U64:     rapid.Uint64().Draw(t, "U64"),
			Uint:    rapid.Uint().Draw(t, "Uint"),
			F32:     rapid.Float32().Draw(t, "F32"),
			F64:     rapid.Float64().Draw(t, "F64"),
			String:  genText.Draw(t, "String"),
			Bytes:   genSlice(rapid.Byte()).Draw(t, "Bytes"),
			Strings: genSlice(genText).Draw(t, "Strings"),
			Points:  genSlice(genPoint).Draw(t, "Points"),
			Deep:    genSlice(genSlice(rapid.Int16())).Draw(t, "Deep"),
			Counts:  rapid.MapOfN(genText, rapid.Int64(), 0, 4).Draw(t, "Counts"),
			ByID:    rapid.MapOfN(rapid.Int32(), genPoint, 0, 4).Draw(t, "ByID"),
			ByPoint: rapid.MapOfN(genPoint, genText, 0, 4).Draw(t, "ByPoint"),
			ByFixed: map[[2]byte][]string{{1, rapid.Byte().Draw(t, "fixed")}: genSlice(genText).Draw(t, "ByFixed")},
			Maybe:   rapid.Ptr(genText, true).Draw(t, "Maybe"),
			Point:   rapid.Ptr(genPoint, true).Draw(t, "Point"),
			Time:    genInstant.Draw(t, "Time").Time(),
			Took:    time.Duration(rapid.Int64().Draw(t, "Took")),
			At:      genInstant.Draw(t, "At"),
			Price:   genRat.Draw(t, "Price"),
			Tier:    genTier.Draw(t, "Tier"),
			Mood:    genMood.Draw(t, "Mood"),
			Moods:   rapid.MapOfN(genText, rapid.Ptr(genMood, true), 0, 3).Draw(t, "Moods"),
		}
		for i := range w.Array {
			w.Array[i] = rapid.Int64().Draw(t, "Array")
		}
		for i := range w.Fixed {
			w.Fixed[i] = rapid.Byte().Draw(t, "Fixed")
		}
		if depth > 0 {
			w.Self = rapid.Ptr(genWide(depth-1), true).Draw(t, "Self")
			w.Others = genSlice(genWide(depth-1)).Draw(t, "Others")
		}
		return w
	})
}
