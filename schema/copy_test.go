package schema_test

import (
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

func TestCopier(t *testing.T) {
	copyOf, shares, err := schema.Copier[wide]()
	if err != nil || !shares {
		t.Fatal(shares, err)
	}
	wides := must(schema.Of[wide]("wide"))
	rapid.Check(t, func(t *rapid.T) {
		v := genWide(1).Draw(t, "v")
		before := must(wides.Append(nil, &v))
		c := copyOf(v)
		if !reflect.DeepEqual(c, v) {
			t.Fatalf("copied as %+v", c)
		}
		if p, q := shared(reflect.ValueOf(v), reflect.ValueOf(c)); p {
			t.Fatalf("%s is shared", q)
		}
		if string(must(wides.Append(nil, &v))) != string(before) {
			t.Fatal("the original changed")
		}
	})
}

// shared tells whether two values point to the same memory anywhere, and where.
func shared(a, b reflect.Value) (bool, string) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || a.Type() == reflect.TypeFor[*time.Location]() {
			return false, ""
		}
		if a.Pointer() == b.Pointer() && a.Type().Elem().Size() > 0 {
			return true, a.Type().String()
		}
		return shared(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Cap() > 0 && a.Type().Elem().Size() > 0 && a.Pointer() == b.Pointer() {
			return true, a.Type().String()
		}
		fallthrough
	case reflect.Array:
		for i := range a.Len() {
			if yes, at := shared(a.Index(i), b.Index(i)); yes {
				return yes, at
			}
		}
	case reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			return true, a.Type().String()
		}
		for iter := a.MapRange(); iter.Next(); {
			if yes, at := shared(iter.Value(), b.MapIndex(iter.Key())); yes {
				return yes, at
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if yes, at := shared(a.Field(i), b.Field(i)); yes {
				return yes, a.Type().Field(i).Name + ": " + at
			}
		}
	}
	return false, ""
}

func TestCopierOfHiddenParts(t *testing.T) {
	type node struct {
		next *[2]node
		list []*node
	}
	type value struct {
		hidden []int
		m      map[string][]byte
		byPtr  map[[1]int]*int
		empty  []int
		none   []int
		n      node
		addr   netip.Addr
		at     time.Time
		rat    *big.Rat
		num    *big.Int
		fast   map[string]int64
	}
	copyOf, shares, err := schema.Copier[value]()
	if err != nil || !shares {
		t.Fatal(err)
	}
	v := value{
		hidden: []int{1}, m: map[string][]byte{"a": {1}}, byPtr: map[[1]int]*int{{1}: new(int)}, empty: []int{},
		n:    node{&[2]node{{list: []*node{{}}}}, []*node{nil}},
		addr: netip.MustParseAddr("fe80::1%eth0"), at: time.Now(), rat: big.NewRat(1, 3), num: big.NewInt(5), fast: map[string]int64{"x": 1},
	}
	c := copyOf(v)
	if !reflect.DeepEqual(v, c) || c.addr != v.addr || c.empty == nil || c.none != nil {
		t.Errorf("%+v", c)
	}
	c.hidden[0], c.m["a"][0], *c.byPtr[[1]int{1}], c.n.next[0].list[0], c.fast["x"] = 9, 9, 9, nil, 9
	c.rat.SetInt64(9)
	c.num.SetInt64(9)
	if v.hidden[0] != 1 || v.m["a"][0] != 1 || *v.byPtr[[1]int{1}] != 0 || v.n.next[0].list[0] == nil || v.fast["x"] != 1 ||
		v.rat.RatString() != "1/3" || v.num.Int64() != 5 {
		t.Errorf("a change of the copy shows in %+v", v)
	}
}

// TestCopierOfArrayWithinItself meets an array of a type that is still being
// looked at.
func TestCopierOfArrayWithinItself(t *testing.T) {
	type node struct {
		next *[1]node
		n    *int
	}
	copyOf, _, err := schema.Copier[*node]()
	if err != nil {
		t.Fatal(err)
	}
	v := &node{next: &[1]node{{n: new(int)}}}
	c := copyOf(v)
	*c.next[0].n = 9
	if c == v || *v.next[0].n != 0 {
		t.Error("a change of the copy shows")
	}
}

func TestCopierOfPlainValues(t *testing.T) {
	type value struct {
		A string
		B [3]struct{ C int }
		D time.Time
		E netip.AddrPort
	}
	copyOf, shares, err := schema.Copier[value]()
	v := value{A: "a"}
	if err != nil || shares || copyOf(v) != v {
		t.Error(shares, err)
	}
	if n := testing.AllocsPerRun(10, func() { copyOf(v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCopierRefuses(t *testing.T) {
	type inner struct{ F func() }
	type value struct {
		A  any
		B  []inner
		B2 []inner
		C  map[string]chan int
		D  *struct{ e error }
		OK int
	}
	_ = struct{ e error }{}.e
	_, _, err := schema.Copier[value]()
	var unsupported *schema.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range unsupported.Faults {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "A B[].F B2[].F C{} D.e" {
		t.Error(got)
	}
	type loop struct{ next *loop }
	copyOf, _, err := schema.Copier[*loop]()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "points to itself") {
			t.Error(r)
		}
	}()
	l := &loop{}
	l.next = l
	copyOf(l)
}
