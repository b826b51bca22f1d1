package schema_test

import (
	"fmt"

	"github.com/sluicestream/sluice/schema"
)

func ExampleOf() {
	type Spend struct {
		Orders int64
		VIP    bool   `avro:"vip"`
		Level  string `avro:"level,alias=tier,default=basic"`
	}
	spends, err := schema.Of[Spend]("spend")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spends.Schema())
	data, _ := spends.Append(nil, &Spend{Orders: 3, Level: "gold"})
	fmt.Printf("%q\n", data)
	var back Spend
	_, err = spends.Decode(data, &back)
	fmt.Println(back, err)
	// Output:
	// {"type":"record","name":"spend","fields":[{"name":"Orders","type":"long","default":0},{"name":"vip","type":"boolean","default":false},{"name":"level","type":"string","default":"basic","aliases":["tier"]}]}
	// "\x06\x00\bgold"
	// {3 false gold} <nil>
}

func ExampleOf_unsupported() {
	type Spend struct {
		Orders int64
		cache  []string
		Hooks  map[string]func()
		Owner  any
	}
	_ = Spend{}.cache
	_, err := schema.Of[Spend]("spend")
	for _, f := range err.(*schema.UnsupportedError).Faults {
		fmt.Printf("%s: %s\n", f.Path, f.Reason)
	}
	// Output:
	// cache: unexported: export it, or tag it `avro:"-"` if it need not be kept
	// Hooks{}: func() can't be stored
	// Owner: interface {} is an interface: name a type
}

func ExampleType_Reader() {
	type Old struct {
		Orders int32
		Name   string
	}
	type Spend struct {
		VIP    bool
		Orders int64
		User   string `avro:",alias=Name"`
	}
	olds, _ := schema.Of[Old]("spend")
	spends, _ := schema.Of[Spend]("spend")
	data, _ := olds.Append(nil, &Old{7, "ada"})

	reader, err := spends.Reader(olds.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	var s Spend
	_, err = reader.Decode(data, &s)
	fmt.Printf("%+v %v\n", s, err)
	// Output: {VIP:false Orders:7 User:ada} <nil>
}

func ExampleDifferences() {
	type Tag struct{ Name string }
	type NewTag struct{ Name int64 }
	olds, _ := schema.Of[struct {
		Tags   []Tag
		Orders int32
		Gone   bool
	}]("spend")
	news, _ := schema.Of[struct {
		Tags   []NewTag
		Orders int64
		VIP    bool
	}]("spend")
	for _, d := range schema.Differences(olds.Schema(), news.Schema()) {
		fmt.Println(d, d.Resolves, d.Drops)
	}
	// Output:
	// Tags[].Name: string → long false false
	// Orders: int → long true false
	// VIP: added (boolean) true false
	// Gone: removed (boolean) true true
}

func ExampleKeyOf() {
	type Route struct {
		Carrier string
		Airport [3]byte
	}
	routes, _ := schema.KeyOf[Route]("key")
	data := routes.Append(nil, Route{"UA", [3]byte{'J', 'F', 'K'}})
	fmt.Printf("%q\n", data)
	_, err := schema.KeyOf[struct{ Price float64 }]("key")
	fmt.Println(err)
	// Output:
	// "\x04UAJFK"
	// key.Price: a floating-point number is no key: NaN isn't equal to itself, and -0 is equal to 0
}

func ExampleJSON() {
	s, _ := schema.Parse([]byte(`{"type":"record","name":"order","fields":[
		{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
		{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"note","type":["null","string"]}]}`))
	out, rest, err := schema.JSON(s)(nil, []byte("\x80\x89\x7a\x04\x04\xe2\x00"))
	fmt.Println(string(out), len(rest), err)
	// Output: {"at":"1970-01-01T00:00:01Z","price":"12.50","note":null} 0 <nil>
}
