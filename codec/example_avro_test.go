package codec_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/typepb"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

func ExampleAvro() {
	type Order struct {
		ID    string
		Cents int64
	}
	c := codec.Avro[Order]()
	bytes, err := c.NewEncoder()(nil, &Order{"o-1", 1299})
	fmt.Printf("%q %v\n", bytes, err)
	var o Order
	fmt.Println(c.NewDecoder()(bytes, &o), o)
	fmt.Println(c.NewDecoder()(bytes[:3], &o))
	// Output:
	// "\x06o-1\xa6\x14" <nil>
	// <nil> {o-1 1299}
	// field ID: a length is negative or more than the bytes that are left
}

func ExampleWriter() {
	type Order struct {
		ID    string `avro:",alias=order_id"`
		Cents int64
		VIP   bool
	}
	c := codec.Avro[Order](codec.Writer(`{"type":"record","name":"Order","fields":[
		{"name":"Cents","type":"int"},
		{"name":"note","type":["null","string"]},
		{"name":"order_id","type":"string"}]}`))
	var o Order
	fmt.Println(c.NewDecoder()([]byte("\xa6\x14\x00\x06o-1"), &o), o)

	fmt.Println(codec.Check(codec.Avro[Order](codec.Writer(`{"type":"record","name":"Order","fields":[
		{"name":"ID","type":["boolean","long"]}]}`))))
	// Output:
	// <nil> {o-1 1299 false}
	// codec avro: Order as it was written can't be read as Order: ID: boolean or long → string (a Go type can hold one of a union's types, and a pointer null too)
}

func ExampleRegistered() {
	type Order struct {
		ID    string
		Cents int64
	}
	schemas := &shelf{} // registry.New returns one that asks a real registry
	c := codec.Avro[Order](codec.Record("shop.Order"), codec.Registered(schemas))

	// A sink knows its topic: the schema is registered before the first record.
	values := codec.For(c, codec.Use{Topic: "orders"})
	err := values.(codec.Preparer).Prepare(context.Background(), codec.Use{Topic: "orders"})
	fmt.Println(err, schemas.enrolls)
	bytes, _ := values.NewEncoder()(nil, &Order{"o-1", 1299})
	fmt.Printf("%q\n", bytes)

	var o Order
	decode := c.NewDecoder()
	fmt.Println(decode(bytes, &o), o)
	err = decode([]byte(`{"ID":"o-1"}`), &o)
	fmt.Println(err)
	schemas.fails = fmt.Errorf("down")
	err = decode([]byte("\x00\x00\x00\x00\x07\x06o-1\xa6\x14"), &o)
	fmt.Println(err)
	fmt.Println("a dead letter:", !errors.Is(err, connector.ErrUnavailable))
	// Output:
	// <nil> [orders-value]
	// "\x00\x00\x00\x00\x01\x06o-1\xa6\x14"
	// <nil> {o-1 1299}
	// no schema's id in front: expected a byte 0, found 0x7b; a codec without codec.Registered reads plain records
	// codec avro: schema 7: down
	// a dead letter: false
}

func ExampleProtobuf() {
	type Column struct {
		Name   string
		Number int32
	}
	// typepb.Field stands for any generated message.
	c := codec.Protobuf(
		func(m *typepb.Field, c *Column) error {
			c.Name, c.Number = m.GetName(), m.GetNumber()
			return nil
		},
		func(c *Column, m *typepb.Field) error {
			m.Name, m.Number = c.Name, c.Number
			return nil
		})
	bytes, err := c.NewEncoder()(nil, &Column{"id", 1})
	fmt.Printf("%q %v\n", bytes, err)
	var column Column
	fmt.Println(c.NewDecoder()(bytes, &column), column)
	fmt.Println(c.NewDecoder()(bytes[:5], &column))
	// Output:
	// "\x18\x01\"\x02id" <nil>
	// <nil> {id 1}
	// no message google.protobuf.Field: cannot parse invalid wire-format data
}
