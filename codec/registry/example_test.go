package registry_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/codec/registry/registrytest"
)

func ExampleNew() {
	server := registrytest.Open()
	defer server.Close()

	schemas, err := registry.New(registry.URLs(server.URL), registry.BasicAuth("orders", "secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer schemas.Close()

	type Order struct {
		ID    string
		Cents int64
	}
	orders := codec.Use{Topic: "orders"}
	prepare := func(p codec.Preparer) {
		err := p.Prepare(context.Background(), orders)
		fmt.Println(strings.ReplaceAll(fmt.Sprint(err), server.URL, "URL"))
	}
	prepare(codec.Avro[Order](codec.Record("shop.Order"), codec.Registered(schemas)).(codec.Preparer))

	type Changed struct{ ID int64 }
	prepare(codec.Avro[Changed](codec.Record("shop.Order"), codec.Registered(schemas)).(codec.Preparer))
	// Output:
	// <nil>
	// codec avro: schema registry URL: subject orders-value: expected a schema that is compatible with version 1 in mode BACKWARD, found one that isn't: TYPE_MISMATCH at /ID/: reader long, writer string. Nothing was registered; bring the type back in line with it, or use another topic or subject
}
