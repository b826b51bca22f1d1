package file

import (
	"bytes"
	"testing"
)

// FuzzRecords: where CSV records end depends on the text, not on how much of it
// is there at a time; and a record without a quote in it ends with its line.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("a,\"b\nc\"\nd"), 1)
	f.Add([]byte("\xef\xbb\xbf\"a\nb\"\n\"\"\"\n\"\n"), 3)
	f.Add([]byte("us\"er,1\nuser,2\n\"a\"b\n\"\n\",\",\"\n"), 2)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		step = max(1, step%64)
		whole := splitter{quotes: true, comma: ','}
		pieces := splitter{quotes: true, comma: ','}
		for start, have := 0, 0; start < len(text); {
			end, found := whole.end(text, start), -1
			for found < 0 && have < len(text) {
				have = min(have+step, len(text))
				found = pieces.end(text[:have], start)
			}
			if end >= 0 && found < 0 { // it was there before
				found = pieces.end(text, start)
			}
			if end != found {
				t.Fatalf("the record of %q at %d ends at %d, and by pieces of %d at %d", text, start, end, step, found)
			}
			if end < 0 {
				return
			}
			record := text[start:end]
			if line := bytes.IndexByte(record, '\n') + 1; line < len(record) && bytes.IndexByte(record[:line], '"') < 0 {
				t.Fatalf("the record %q goes on behind a line without a quote", record)
			}
			start = end
			have = max(have, start)
		}
	})
}

// A quote where none may be spoils its own record, and none behind it.
func TestStrayQuotes(t *testing.T) {
	text := []byte("us\"er-1,1\nuser-2,2\n\"user-3\"x,3\nuser-4\",\"4\nstill 4\"\nuser-5,5\n")
	want := []string{"us\"er-1,1\n", "user-2,2\n", "\"user-3\"x,3\n", "user-4\",\"4\nstill 4\"\n", "user-5,5\n"}
	s := splitter{quotes: true, comma: ','}
	at := 0
	for _, record := range want {
		end := s.end(text, at)
		if end < 0 || string(text[at:end]) != record {
			t.Fatalf("the record at %d ends at %d, want %q", at, end, record)
		}
		at = end
	}
}
