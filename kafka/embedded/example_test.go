package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sluicestream/sluice/kafka/embedded"
)

// A broker in memory, with a topic and two records.
func ExampleStart() {
	b, err := embedded.Start(embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 4}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	_, err = b.Fill(context.Background(), "orders", func(yield func(embedded.Record, error) bool) {
		_ = yield(embedded.Record{Key: []byte("ann"), Value: []byte(`{"user":"ann","cents":1200}`)}, nil) &&
			yield(embedded.Record{Key: []byte("bob"), Value: []byte(`{"user":"bob","cents":300}`)}, nil)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Records("orders"), "records")
	// Clients connect to b.Addr().

	// Output: 2 records
}
