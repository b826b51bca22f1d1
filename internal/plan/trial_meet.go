package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/schema"
)

// mostRows bounds the rows that are remembered to see which meet: about a gigabyte.
// The migration itself takes more for each.
const mostRows = 24 << 20

// rowHash stands for a row's key and element. It has 128 bits of a cryptographic
// hash, so that no two rows have one.
type rowHash [16]byte

// meeting sees which rows meet at one key, where nobody said what becomes of them.
// A nil one looks at nothing.
type meeting struct {
	limit   int
	keyText func(dst, src []byte) (out, rest []byte, err error)

	mu   sync.Mutex
	rows map[rowHash]struct{}
	full bool // there were more rows than are remembered
	met  int64
	keys []string
}

// mayMeet tells whether rows of a way may meet, and are no one's to put together.
func mayMeet(way *carry.Way) bool { return !way.Ordered && way.Merge == nil && !way.Numbered }

func newMeeting(way *carry.Way) *meeting {
	if !mayMeet(way) {
		return nil
	}
	return &meeting{limit: mostRows, keyText: schema.Text(way.Form.Key), rows: map[rowHash]struct{}{}}
}

func (m *meeting) looks() bool { return m != nil }

// meet is told of rows: their keys, each with its element, and where these end.
func (m *meeting) meet(keys []byte, ends []keyEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := 0
	for _, end := range ends {
		m.row(keys[start:end.key], keys[start:end.element])
		start = end.element
	}
}

func (m *meeting) row(key, row []byte) {
	sum := sha256.Sum256(row)
	hash := rowHash(sum[:len(rowHash{})])
	if _, met := m.rows[hash]; met {
		m.met++
		if len(m.keys) < mostFailures {
			m.keys = append(m.keys, m.text(key))
		}
		return
	}
	if len(m.rows) == m.limit {
		m.full = true
		return
	}
	m.rows[hash] = struct{}{}
}

func (m *meeting) text(key []byte) string {
	text, _, err := m.keyText(nil, key)
	if err != nil {
		return fmt.Sprintf("% x", key)
	}
	return string(text)
}

// addTo adds what was seen.
func (m *meeting) addTo(t *Trial) {
	slices.Sort(m.keys)
	t.Meet, t.Meeting, t.MeetUnknown = m.met, slices.Compact(m.keys), m.full
}
