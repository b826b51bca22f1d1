package schema_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/sluicestream/sluice/schema"
)

type noSymbols string

func (noSymbols) Symbols() []string { return nil }

type badSymbol string

func (badSymbol) Symbols() []string { return []string{"two words"} }

type twiceSymbol string

func (twiceSymbol) Symbols() []string { return []string{"a", "a"} }

type (
	holdsItself  []holdsItself
	mapsItself   map[string]mapsItself
	pointsItself *pointsItself
)

type embedded struct {
	ID    string
	inner int
}

type wrong struct {
	A      any
	B      chan int
	C      func()
	D      complex128
	E      uintptr
	F      unsafe.Pointer
	G      **int
	H      *big.Rat
	I      big.Int
	hidden int
	J      []struct{ X map[string]error }
	K      map[float64]int
	L      map[time.Time]int
	M      map[struct{ P *int }]int
	N      noSymbols
	O      badSymbol
	P      twiceSymbol
	Q      holdsItself
	R      mapsItself
	S      pointsItself
	T      int      `avro:"no good"`
	U      int      `avro:",alias=1st"`
	V      int      `avro:",defualt=1"`
	W      int8     `avro:",default=200"`
	X      tier     `avro:",default=tin"`
	Y      []string `avro:",default=[]"`
	Z      *big.Rat `avro:",precision=2,scale=3"`
	AA     *big.Rat `avro:",precision=3,scale=1,default=5"`
	AB     int      `avro:",precision=3"`
	AC     int      `avro:"W"`
	Größe  int
	embedded
	*point
	AD [1 << 17]int
	AE bool      `avro:",default=ja"`
	AF time.Time `avro:",default=today"`
	AG big.Rat   `avro:",precision=3,scale=1,default=1/3"`
	AH uint32    `avro:",default=-1"`
	AI *int      `avro:",default=1"`
}

func TestEveryFaultIsListed(t *testing.T) {
	_ = wrong{}.hidden
	_ = embedded{}.inner
	_, err := schema.Of[wrong]("spend")
	var unsupported *schema.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range unsupported.Faults {
		paths = append(paths, f.Path)
	}
	want := []string{
		"A", "B", "C", "D", "E", "F", "G", "H", "I.neg", "I.abs", "hidden", "J[].X{}",
		"K{key}", "L{key}", "M{key}.P", "N", "O", "P", "Q[]", "R{}", "S",
		"no good", "U", "V", "W", "X", "Y", "Z", "AA", "AB", "W", "Größe", "inner", "point", "AD",
		"AE", "AF", "AG", "AH", "AI",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("got  %q\nwant %q", paths, want)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "spend.J[].X{}: error is an interface") {
		t.Error(err)
	}
	for _, f := range unsupported.Faults {
		if f.Reason == "" {
			t.Errorf("%s has no reason", f.Path)
		}
	}
}

func TestWholeTypesRefused(t *testing.T) {
	for want, err := range map[string]error{
		"x: the type as a whole is a pointer: use int": second(schema.Of[*int]("x")),
		"x: interface {} is an interface: name a type": second(schema.Of[any]("x")),
		"x[]: chan int can't be stored":                second(schema.Of[[]chan int]("x")),
		"x-y: \"x-y\" is no name":                      second(schema.Of[int]("x-y")),
		"a name is empty":                              second(schema.Of[int]("")),
		"x{key}: a floating-point number is no key":    second(schema.Of[map[float32]int]("x")),
		"x{key}.Yes: a key can't leave out a field": second(schema.Of[map[struct {
			Yes int `avro:"-"`
		}]int]("x")),
		"x: *int is no key: it is equal only to itself":          second(schema.KeyOf[*int]("x")),
		"x: interface {} is no key":                              second(schema.KeyOf[any]("x")),
		"x: time.Time is no key":                                 second(schema.KeyOf[time.Time]("x")),
		"x: [2]int is no key: of the arrays, those of bytes are": second(schema.KeyOf[[2]int]("x")),
		"x.F: a floating-point number is no key":                 second(schema.KeyOf[struct{ F float32 }]("x")),
		"x: chan int is no key":                                  second(schema.KeyOf[chan int]("x")),
		"x.In.hidden: unexported":                                second(schema.KeyOf[struct{ In struct{ hidden int } }]("x")),
		"x: complex64 has no form in Avro":                       second(schema.Of[complex64]("x")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type (
	doubled0 struct{ A, B int }
	doubled1 struct{ A, B doubled0 }
	doubled2 struct{ A, B doubled1 }
	doubled3 struct{ A, B doubled2 }
	doubled4 struct{ A, B doubled3 }
	doubled5 struct{ A, B doubled4 }
	doubled6 struct{ A, B doubled5 }
	doubled7 struct{ A, B [3]doubled6 }
	doubled8 struct{ A, B map[string]doubled7 }
	doubled9 struct{ A, B []doubled8 }
	doubledA struct{ A, B, C, D doubled9 }
	doubledB struct{ A, B, C, D *doubledA }
)

func TestTypesThatDoubleAreBounded(t *testing.T) {
	_, err := schema.Of[doubledB]("x")
	var unsupported *schema.UnsupportedError
	if !errors.As(err, &unsupported) || len(unsupported.Faults) != 1 || !strings.Contains(err.Error(), "more than 10000 parts") {
		t.Error(err)
	}
}

func TestFieldsOfTypes(t *testing.T) {
	type Named string
	type inner struct {
		A int
		_ [4]int
	}
	type value struct {
		inner
		Inner inner `avro:"in"`
		Named
		time.Time
		Kept    int `avro:"-"`
		private int `avro:"-"`
		_       struct{}
	}
	s := must(schema.Of[value]("v")).Schema()
	var names []string
	for _, f := range s.Fields() {
		names = append(names, f.Name+" "+f.Type.Word())
	}
	if got := fmt.Sprint(names); got != "[A long in record Named string Time timestamp]" {
		t.Error(got)
	}
	_ = value{private: 1}
	v := value{Kept: 5}
	v.A, v.Inner.A, v.Named = 1, 2, "n"
	values := must(schema.Of[value]("v"))
	got := value{Kept: 9}
	must(values.Decode(must(values.Append(nil, &v)), &got))
	if got.A != 1 || got.Inner.A != 2 || got.Named != "n" || got.Kept != 0 {
		t.Errorf("%+v", got)
	}
}
