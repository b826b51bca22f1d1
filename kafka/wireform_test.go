package kafka

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

var wireCases = []struct {
	name   string
	record wireRecord
	bytes  []byte
}{
	{"value only", wireRecord{value: []byte("v"), partition: -1, time: connector.NoTime}, []byte{1, 2, 'v'}},
	{"tombstone", wireRecord{key: []byte("k"), partition: -1, time: connector.NoTime}, []byte{1, 1, 1, 'k'}},
	{"empty key and value", wireRecord{key: []byte{}, value: []byte{}, partition: -1, time: connector.NoTime}, []byte{1, 3, 0}},
	{"nothing", wireRecord{partition: -1, time: connector.NoTime}, []byte{1, 0}},
	{"all", wireRecord{
		key: []byte("k"), value: []byte("v"), partition: 300, time: -1,
		headers: []connector.Header{{Key: "a", Value: []byte("b")}, {Key: "", Value: []byte{}}, {Key: "n"}},
	}, []byte{1, 31, 0xac, 2, 1, 3, 1, 'a', 2, 'b', 0, 1, 1, 'n', 0, 1, 'k', 'v'}},
}

func TestWireForm(t *testing.T) {
	for _, c := range wireCases {
		t.Run(c.name, func(t *testing.T) {
			got := append(c.record.appendHead(nil, c.record.value == nil), c.record.value...)
			if !bytes.Equal(got, c.bytes) {
				t.Errorf("written as % x, expected % x", got, c.bytes)
			}
			back, err := parseWire(c.bytes, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, c.record) {
				t.Errorf("read as %+v, expected %+v", back, c.record)
			}
		})
	}
}

func TestWireFormRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"no form":         nil,
		"a later form":    {2, 0},
		"no flags":        {1},
		"unknown flags":   {1, 32},
		"cut key":         {1, 1, 2, 'k'},
		"cut length":      {1, 1, 0x80},
		"more behind":     {1, 1, 1, 'k', 'x'},
		"large partition": {1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"many headers":    {1, 16, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		if r, err := parseWire(b, nil); err == nil {
			t.Errorf("%s: read as %+v, expected an error", name, r)
		}
	}
	if _, err := parseWire(nil, nil); !errors.Is(err, errNoWire) {
		t.Errorf("got %v, expected %v", err, errNoWire)
	}
}

func FuzzWireForm(f *testing.F) {
	for _, c := range wireCases {
		f.Add(c.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseWire(b, nil)
		if err != nil {
			return
		}
		again, err := parseWire(append(r.appendHead(nil, r.value == nil), r.value...), nil)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%x was read as %+v, and again as %+v, %v", b, r, again, err)
		}
	})
}
