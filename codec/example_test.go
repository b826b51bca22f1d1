package codec_test

import (
	"fmt"

	"github.com/sluicestream/sluice/codec"
)

func ExampleJSON() {
	type Order struct {
		ID    string
		Cents int64
	}
	decode := codec.JSON[Order]().NewDecoder()
	var o Order
	fmt.Println(decode([]byte(`{"ID":"o-1","Cents":1299}`), &o), o)
	fmt.Println(decode([]byte(`{"ID":"o-1","Cents":"12.99"}`), &o))
	// Output:
	// <nil> {o-1 1299}
	// field Cents: expected int64, found the string "12.99"
}

func ExampleStrict() {
	type Order struct{ ID string }
	decode := codec.JSON[Order](codec.Strict()).NewDecoder()
	var o Order
	fmt.Println(decode([]byte(`{"ID":"o-1","Cents":1299}`), &o))
	// Output: field Cents: no field of codec_test.Order has this name, and the codec is strict
}

func ExampleString() {
	var s string
	fmt.Println(codec.String().NewDecoder()([]byte("GET / 200"), &s), s)
	// Output: <nil> GET / 200
}

func ExampleBytes() {
	var b []byte
	fmt.Println(codec.Bytes().NewDecoder()([]byte{1, 2, 255}, &b), b)
	// Output: <nil> [1 2 255]
}
