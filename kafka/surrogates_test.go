package kafka

import "testing"

// A character beyond the first 65,536 is two escapes in Java's files.
func TestPropertiesOfTwoEscapes(t *testing.T) {
	all, err := parseProperties([]byte(`password=a\uD83D\uDE00b\u00e4`))
	if err != nil || len(all) != 1 || all[0].value != "a😀bä" {
		t.Fatalf("got %+v, %v", all, err)
	}
	for _, half := range []string{`\ud83d`, `\ud83dx`, `\ude00\ud83d`, `\ud83d\u0041`, `\ud83d\ude`, `\ud83d\`} {
		if all, err := parseProperties([]byte("p=" + half)); err == nil {
			t.Errorf("%s: got %+v", half, all)
		}
	}
}
