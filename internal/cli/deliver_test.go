package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestWriteRests(t *testing.T) {
	var out bytes.Buffer
	if err := writeRests(&out, []Rest{{Sink: "totals", Delivered: 1200}, {Sink: "log", Delivered: 3, Pending: 4}}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(strings.Fields(out.String()), " "), "SINK DELIVERED PENDING totals 1,200 0 log 3 4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
