package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// What a succession is in JSON: where nothing was dropped it has no from, and its
// last part no until.
type (
	storedSuccession struct {
		From  *int64       `json:"from,omitempty"`
		Cut   bool         `json:"cut,omitempty"`
		Parts []storedPart `json:"parts"`
	}
	storedPart struct {
		Parameters map[string]string `json:"parameters"`
		Until      *int64            `json:"until,omitempty"`
		Cut        bool              `json:"cut,omitempty"`
	}
)

// MarshalJSON writes each part's parameters and where it ends.
func (s Succession) MarshalJSON() ([]byte, error) {
	stored := storedSuccession{Cut: s.cut, Parts: make([]storedPart, len(s.parts))}
	if s.from != math.MinInt64 {
		stored.From = &s.from
	}
	for i, part := range s.parts {
		stored.Parts[i] = storedPart{Parameters: part.Definition.Parameters(), Cut: part.Cut}
		if part.Until != Forever {
			stored.Parts[i].Until = &part.Until
		}
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON writes, and checks it as Then and Cut do.
// Custom windows lack their functions, which may be put into the definitions.
func (s *Succession) UnmarshalJSON(raw []byte) error {
	var stored storedSuccession
	if err := json.Unmarshal(raw, &stored); err != nil {
		return fmt.Errorf("succession of windows: %w", err)
	}
	read, err := stored.succession()
	if err != nil {
		return fmt.Errorf("succession of windows: %w", err)
	}
	*s = read
	return nil
}

func (stored *storedSuccession) succession() (s Succession, err error) {
	if len(stored.Parts) == 0 {
		return s, errors.New("it has no part")
	}
	for i, part := range stored.Parts {
		d, err := Parse(part.Parameters)
		if err != nil {
			return s, err
		}
		if i == 0 {
			s = Begin(d)
			if stored.From != nil {
				s.from, s.cut = *stored.From, stored.Cut
			}
			continue
		}
		before := stored.Parts[i-1]
		if before.Until == nil {
			return s, fmt.Errorf("part %d has no end, and isn't the last", i-1)
		}
		if s, err = s.followed(d, *before.Until, before.Cut); err != nil {
			return s, err
		}
	}
	if last := stored.Parts[len(stored.Parts)-1]; last.Until != nil || last.Cut {
		return s, errors.New("the last part has an end")
	}
	return s, nil
}
