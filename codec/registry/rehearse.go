package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// Rehearse implements [codec.RehearsingRegistry]. The errors are those of
// [Registry.Enroll]. A schema that refers to one which isn't registered yet can't
// be compared with what a subject has: the error matches [connector.ErrNotAsked].
func (r *Registry) Rehearse(ctx context.Context, subject string, s *codec.Schema, lookUp bool) error {
	e := enroller{r: &asking{Registry: r}, lookUp: lookUp, rehearsal: true, done: map[string]sr.SchemaReference{}}
	_, err := e.enroll(ctx, subject, s)
	return err
}

// errUnregistered says in a rehearsal that what a schema refers to would be
// registered first.
var errUnregistered = errors.New("it refers to a schema that isn't registered yet")

// incomparable is what comes of a schema that can't be shown to the registry: one
// that would be its subject's first fits.
func (e *enroller) incomparable(ctx context.Context, subject string) error {
	versions, err := e.r.versions(ctx, subject)
	if err != nil || len(versions) == 0 {
		return err
	}
	return connector.NotAsked(fmt.Errorf("schema registry %s: subject %s: whether the schema fits can't be asked: %w", e.r.name, subject, errUnregistered))
}
