package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/env"
)

// The registry's own codes of errors.
const (
	noSubject       = 40401
	noVersion       = 40402
	noSchema        = 40403
	noSubjectConfig = 40408
)

// What is remembered of ids that the registry doesn't know: records of another
// registry's topic all have such.
const (
	maxUnknown    = 1000
	unknownLasts  = 10 * time.Second
	maxReferences = 1000
)

// Registry is a schema registry. It implements [codec.Registry]. Any number of
// goroutines may use it.
type Registry struct {
	client    *sr.Client
	transport *http.Transport
	name      string
	clock     env.Clock
	patience  time.Duration
	secrets   []string

	mu      sync.Mutex
	unknown map[uint32]time.Time // until when an id isn't asked for again
}

// Close closes connections that aren't in use.
func (r *Registry) Close() error {
	r.transport.CloseIdleConnections()
	return nil
}

// Schema implements [codec.Registry].
func (r *Registry) Schema(ctx context.Context, id uint32) (*codec.Schema, error) {
	if id > math.MaxInt32 || r.isUnknown(id) {
		return nil, fmt.Errorf("schema registry %s: %w", r.name, codec.ErrUnknownID)
	}
	what := fmt.Sprintf("the schema of id %d", id)
	var s sr.Schema
	a := &asking{Registry: r}
	err := a.call(ctx, what, func(ctx context.Context) (err error) {
		s, err = r.client.SchemaByID(ctx, int(id))
		return err
	})
	if codeOf(err) == noSchema {
		r.noteUnknown(id)
		return nil, fmt.Errorf("schema registry %s: %w", r.name, codec.ErrUnknownID)
	}
	if err != nil {
		return nil, r.refused(what, err)
	}
	f := fetcher{r: a, schemas: map[version]*codec.Schema{}}
	return f.with(ctx, s)
}

func (r *Registry) isUnknown(id uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, noted := r.unknown[id]
	if noted && !r.clock.Now().Before(until) {
		delete(r.unknown, id)
		return false
	}
	return noted
}

func (r *Registry) noteUnknown(id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unknown) == maxUnknown {
		clear(r.unknown)
	}
	r.unknown[id] = r.clock.Now().Add(unknownLasts)
}

// refused is the error of an answer that refuses; others it leaves alone.
func (r *Registry) refused(what string, err error) error {
	if _, ok := errors.AsType[*sr.ResponseError](err); ok {
		return r.fault(what, err, 1, 0)
	}
	return err
}

// codeOf returns the registry's own code of an error; 0 if it has none.
func codeOf(err error) int {
	if refused, ok := errors.AsType[*sr.ResponseError](err); ok {
		return refused.ErrorCode
	}
	return 0
}

// statusOf returns the HTTP status of an answer that refuses; else 0.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*sr.ResponseError](err); ok {
		return refused.StatusCode
	}
	return 0
}

// version names a schema by where it is registered.
type version struct {
	subject string
	number  int
}

// fetcher fetches what a schema refers to, each once.
type fetcher struct {
	r       *asking
	schemas map[version]*codec.Schema // nil: on its way
}

func (f *fetcher) with(ctx context.Context, s sr.Schema) (*codec.Schema, error) {
	out := &codec.Schema{Format: codec.Format(s.Type.String()), Text: s.Schema}
	for _, ref := range s.References {
		at := version{ref.Subject, ref.Version}
		known, met := f.schemas[at]
		switch {
		case met && known == nil:
			return nil, fmt.Errorf("schema registry %s: version %d of subject %s refers to itself", f.r.name, at.number, at.subject)
		case !met:
			if len(f.schemas) == maxReferences {
				return nil, fmt.Errorf("schema registry %s: a schema refers to more than %d others", f.r.name, maxReferences)
			}
			f.schemas[at] = nil
			var err error
			if known, err = f.fetch(ctx, at); err != nil {
				return nil, err
			}
			f.schemas[at] = known
		}
		out.References = append(out.References, codec.Reference{Name: ref.Name, Schema: known})
	}
	return out, nil
}

func (f *fetcher) fetch(ctx context.Context, at version) (*codec.Schema, error) {
	what := fmt.Sprintf("version %d of subject %s", at.number, at.subject)
	var s sr.SubjectSchema
	err := f.r.call(ctx, what, func(ctx context.Context) (err error) {
		s, err = f.r.client.SchemaByVersion(ctx, at.subject, at.number)
		return err
	})
	if err != nil {
		return nil, f.r.refused(what, err)
	}
	return f.with(ctx, s.Schema)
}
