package engine

import (
	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/internal/window"
	"github.com/sluicestream/sluice/schema"
)

// Window is a half-open span of time, [Start, End).
type Window struct {
	Start schema.Instant `avro:"start"`
	End   schema.Instant `avro:"end"`
}

// In is a key in a window, which is what an entry of a window's state belongs to.
type In[K comparable] struct {
	Key    K      `avro:"key"`
	Window Window `avro:"window"`
}

func spanOf(w Window) window.Span { return window.Span{Start: int64(w.Start), End: int64(w.End)} }

func windowOf(s window.Span) Window { return Window{schema.Instant(s.Start), schema.Instant(s.End)} }

// AddWindowState adds a state of one value per key and window to the stage of keyed.
// All windows of a key that is a session have one hash, so that they are found by it.
func AddWindowState[K comparable, S any](g *Graph, stage *Stage[K], spec StateSpec, value *schema.Type[S], carried carry.Spec[In[K], S], sessions bool) (*TableSpec[In[K], S], error) {
	keys := stage.keys
	windows, err := schema.KeyOf[Window]("window")
	if err != nil {
		return nil, err
	}
	rowKeys, err := schema.KeyOf[In[K]]("key")
	if err != nil {
		return nil, err
	}
	hash := windowHash
	if sessions {
		hash = func(key uint64, _ Window) uint64 { return key }
	}
	t := &TableSpec[In[K], S]{
		windowed:      true,
		sessions:      sessions,
		rowKey:        rowKeys.Schema(),
		appendKey:     func(dst []byte, r *In[K]) []byte { return keys.Append(dst, r.Key) },
		appendElement: func(dst []byte, r *In[K]) []byte { return windows.Append(dst, r.Window) },
		decodeRow: func(e *state.Entry) (r In[K], h uint64, err error) {
			if r.Key, _, err = keys.Decode(e.Key); err != nil {
				return r, 0, err
			}
			r.Window, _, err = windows.Decode(e.Element)
			return r, hash(xxhash.Sum64(e.Key), r.Window), err
		},
	}
	return addElements(g, stage, spec, t, windows, value, carried)
}

// windowHash is the hash of a key in a window: the slot is the key's.
func windowHash(key uint64, w Window) uint64 {
	const slotBits = uint64(0xffff) << 48
	h := key ^ uint64(w.Start)*0x9e3779b97f4a7c15 ^ uint64(w.End)*0xc2b2ae3d27d4eb4f
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return key&slotBits | (h^h>>32)&^slotBits
}
