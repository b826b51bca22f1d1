package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicestream/sluice/schema"
)

// same holds a key's text against the encoding that jobs store it under.
func same[K comparable](t rapid.TB, key K, text string) {
	t.Helper()
	k, err := schema.KeyOf[K]("key")
	if err != nil {
		t.Fatal(err)
	}
	got, err := encodeKey(k.Schema(), text)
	if err != nil {
		t.Fatalf("%s for %v: %v", text, key, err)
	}
	if want := k.Append(nil, key); !bytes.Equal(got, want) {
		t.Fatalf("%s for %v is encoded as %x, want %x", text, key, got, want)
	}
}

func TestKeysAsTextAreThoseOfJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		same(t, text, text)
		same(t, rapid.Just(true).Draw(t, "bool"), "true")
		i := rapid.Int64().Draw(t, "int64")
		same(t, i, fmt.Sprint(i))
		same(t, int32(i), fmt.Sprint(int32(i)))
		same(t, int8(i), fmt.Sprint(int8(i)))
		same(t, uint8(i), fmt.Sprint(uint8(i)))
		same(t, uint16(i), fmt.Sprint(uint16(i)))
		same(t, uint32(i), fmt.Sprint(uint32(i)))
		same(t, uint64(i), fmt.Sprint(uint64(i)))
		id := [4]byte{byte(i), byte(i >> 8), 3, 4}
		same(t, id, base64.StdEncoding.EncodeToString(id[:]))
		at := time.UnixMicro(rapid.Int64Range(-1<<40, 1<<50).Draw(t, "time"))
		same(t, schema.InstantOf(at), at.UTC().Format(time.RFC3339Nano))
		same(t, schema.InstantOf(at), fmt.Sprint(at.UnixMicro()))
	})
}

func TestKeysAsJSONAreThoseOfJobs(t *testing.T) {
	type part struct {
		Name string
		On   bool
	}
	type key struct {
		Part  part
		Count int32
		Big   uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		k := key{
			part{rapid.String().Draw(t, "name"), rapid.Bool().Draw(t, "on")},
			rapid.Int32().Draw(t, "count"), rapid.Uint64().Draw(t, "big"),
		}
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		same(t, k, string(text))
	})
}

func TestKeysRefused(t *testing.T) {
	nested := schema.Record("key", schema.Field{Name: "A", Type: schema.Record("a", schema.Field{Name: "B", Type: schema.Boolean()})})
	for _, test := range []struct {
		schema     *schema.Schema
		text, want string
	}{
		{schema.Long(), "one", "an integer is expected"},
		{schema.Long(), "9223372036854775808", "an integer that fits 64 bits is expected"},
		{schema.Int(), "2147483648", "an integer that fits 32 bits is expected"},
		{schema.Uint64(), "-1", "a number is expected"},
		{schema.Boolean(), "yes", "expected true or false"},
		{schema.Timestamp(), "noon", "expected a time such as"},
		{schema.Fixed("id", 3), "AAA=", "expected 3 bytes in base64"},
		{schema.Double(), "1", "a key of the type double can't be given here"},
		{nested, "B", "expected a JSON object"},
		{nested, "{", "unexpected EOF"},
		{nested, "{}", "field A is missing"},
		{nested, `{"A":true}`, "field A: expected a JSON object"},
		{nested, `{"A":{"B":true,"C":1}}`, "field A: there is no field C"},
		{nested, `{"A":{"B":"perhaps"}}`, "field A: field B: expected true or false"},
	} {
		_, err := encodeKey(test.schema, test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s as %s: %v, want %q", test.text, test.schema, err, test.want)
		}
	}
}

func FuzzKey(f *testing.F) {
	f.Add(`"string"`, "ann")
	f.Add(`{"type":"record","name":"k","fields":[{"name":"A","type":"int"},{"name":"B","type":{"type":"fixed","name":"f","size":2}}]}`, `{"A":1,"B":"AAA="}`)
	f.Fuzz(func(t *testing.T, text, key string) {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			return
		}
		encoded, err := encodeKey(s, key)
		if err != nil {
			return
		}
		if n, err := schema.Skipper(s)(encoded); err != nil || n != len(encoded) {
			t.Errorf("%s as %s is encoded as %x, of which %d bytes are a key: %v", key, text, encoded, n, err)
		}
	})
}
