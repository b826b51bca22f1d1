package twos

import (
	"bytes"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestKnown(t *testing.T) {
	for n, want := range map[int64][]byte{
		0: {0}, 1: {1}, 127: {0x7f}, 128: {0, 0x80}, 255: {0, 0xff}, 256: {1, 0},
		-1: {0xff}, -128: {0x80}, -129: {0xff, 0x7f}, -256: {0xff, 0}, -32768: {0x80, 0},
	} {
		if got := Append(nil, big.NewInt(n)); !bytes.Equal(got, want) {
			t.Errorf("%d is written % x, expected % x", n, got, want)
		}
	}
	if got := Int(nil); got.Sign() != 0 {
		t.Errorf("no bytes are %v", got)
	}
	if got := Int([]byte{0xff, 0xff, 0x80}); got.Int64() != -128 {
		t.Errorf("-128 with more bytes than needed is %v", got)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "negative") {
			v.Neg(v)
		}
		if got := Int(Append([]byte("before"), v)[len("before"):]); got.Cmp(v) != 0 {
			t.Fatalf("%v came back as %v", v, got)
		}
	})
}
