package kafka

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// place is a partition of a topic.
type place struct {
	topic  string
	number int32
}

// String is the partition's name in manifests: "orders/3". Topics have no slash.
func (p place) String() string { return p.topic + "/" + strconv.Itoa(int(p.number)) }

// parsePlace takes a partition's name apart.
func parsePlace(name string) (place, error) {
	topic, digits, ok := strings.Cut(name, "/")
	number, err := strconv.ParseInt(digits, 10, 32)
	if !ok || topic == "" || err != nil || number < 0 || strconv.FormatInt(number, 10) != digits {
		return place{}, fmt.Errorf("partition %q is none of Kafka: expected a topic and a number, as in orders/3", name)
	}
	return place{topic, int32(number)}, nil
}

// topicID is what tells a topic from another of the same name. It is zero for
// brokers older than 2.8.
type topicID [16]byte

// String is the id as Kafka's own tools show it; empty for none.
func (id topicID) String() string {
	if id == (topicID{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}
