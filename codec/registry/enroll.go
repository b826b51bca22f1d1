package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sluicestream/sluice/codec"
)

// maxVersions bounds with how many of a subject's versions a schema is compared,
// the newest first.
const maxVersions = 1000

// Enroll implements [codec.Registry]. What a schema refers to is enrolled first,
// each under a subject of the name by which it is referred to. The error is an
// *[IncompatibleError], a *[MissingError] or an *[Error].
func (r *Registry) Enroll(ctx context.Context, subject string, s *codec.Schema, lookUp bool) (uint32, error) {
	e := enroller{r: &asking{Registry: r}, lookUp: lookUp, done: map[string]sr.SchemaReference{}}
	found, err := e.enroll(ctx, subject, s)
	return uint32(found.ID), err
}

// enroller enrols one schema and what it refers to.
type enroller struct {
	r         *asking
	lookUp    bool
	rehearsal bool                          // register nothing
	done      map[string]sr.SchemaReference // by name
}

func (e *enroller) enroll(ctx context.Context, subject string, s *codec.Schema) (found sr.SubjectSchema, err error) {
	asked := sr.Schema{Schema: s.Text}
	if err := asked.Type.UnmarshalText([]byte(s.Format)); err != nil {
		return found, fmt.Errorf("schema registry %s: subject %s: %w", e.r.name, subject, err)
	}
	if asked.References, err = e.references(ctx, s); errors.Is(err, errUnregistered) && !e.lookUp {
		return found, e.incomparable(ctx, subject)
	} else if err != nil {
		return found, err
	}
	found, known, err := e.r.lookUp(ctx, subject, asked)
	if err != nil || known {
		return found, err
	}
	if e.lookUp {
		versions, err := e.r.versions(ctx, subject)
		if err != nil {
			return found, err
		}
		missing := &MissingError{Registry: e.r.name, Subject: subject}
		if len(versions) > 0 {
			missing.Newest = versions[len(versions)-1]
		}
		return found, missing
	}
	if err := e.r.compare(ctx, subject, asked); err != nil || e.rehearsal {
		return found, err
	}
	return e.r.register(ctx, subject, asked)
}

func (e *enroller) references(ctx context.Context, s *codec.Schema) (refs []sr.SchemaReference, err error) {
	for _, ref := range s.References {
		done, is := e.done[ref.Name]
		if !is {
			if len(e.done) == maxReferences {
				return nil, fmt.Errorf("schema registry %s: a schema refers to more than %d others", e.r.name, maxReferences)
			}
			found, err := e.enroll(ctx, ref.Name, ref.Schema)
			if err != nil {
				return nil, err
			}
			if found.Version == 0 && e.rehearsal {
				return nil, errUnregistered
			}
			if found.Version == 0 { // a new one
				if found, _, err = e.r.lookUp(ctx, ref.Name, found.Schema); err != nil {
					return nil, err
				}
			}
			done = sr.SchemaReference{Name: ref.Name, Subject: ref.Name, Version: found.Version}
			e.done[ref.Name] = done
		}
		refs = append(refs, done)
	}
	return refs, nil
}

// lookUp tells whether a subject has a schema.
func (r *asking) lookUp(ctx context.Context, subject string, s sr.Schema) (found sr.SubjectSchema, known bool, err error) {
	what := "whether subject " + subject + " has the schema"
	err = r.call(ctx, what, func(ctx context.Context) (err error) {
		found, err = r.client.LookupSchema(ctx, subject, s)
		return err
	})
	switch codeOf(err) {
	case noSubject, noSchema:
		return found, false, nil
	}
	return found, err == nil, r.refused(what, err)
}

// versions are the numbers of a subject's versions, in order.
func (r *asking) versions(ctx context.Context, subject string) (versions []int, err error) {
	what := "the versions of subject " + subject
	err = r.call(ctx, what, func(ctx context.Context) (err error) {
		versions, err = r.client.SubjectVersions(ctx, subject)
		return err
	})
	if codeOf(err) == noSubject {
		return nil, nil
	}
	slices.Sort(versions)
	return versions, r.refused(what, err)
}

// compare asks whether a new schema fits the subject's versions by its mode: the
// newest, or all in a transitive one.
func (r *asking) compare(ctx context.Context, subject string, s sr.Schema) error {
	versions, err := r.versions(ctx, subject)
	if err != nil || len(versions) == 0 {
		return err
	}
	mode, err := r.mode(ctx, subject)
	if err != nil || mode == sr.CompatNone {
		return err
	}
	slices.Reverse(versions)
	most := 1
	if strings.HasSuffix(mode.String(), "_TRANSITIVE") {
		most = maxVersions
	}
	for _, number := range versions[:min(most, len(versions))] {
		if err := r.fits(ctx, subject, number, mode, s); err != nil {
			return err
		}
	}
	return nil
}

// fits asks whether a schema fits one version.
func (r *asking) fits(ctx context.Context, subject string, number int, mode sr.CompatibilityLevel, s sr.Schema) error {
	what := fmt.Sprintf("whether the schema fits version %d of subject %s", number, subject)
	path := fmt.Sprintf("/compatibility/subjects/%s/versions/%d", url.PathEscape(subject), number)
	var result struct {
		Is       bool     `json:"is_compatible"`
		Messages []string `json:"messages"`
		Reason   string   `json:"reason"` // some registries have this instead
	}
	err := r.call(ctx, what, func(ctx context.Context) error {
		return r.client.Do(sr.WithParams(ctx, sr.Verbose), http.MethodPost, path, s, &result)
	})
	switch {
	case codeOf(err) == noVersion: // deleted meanwhile
		return nil
	case err != nil:
		return r.refused(what, err)
	case result.Is:
		return nil
	case result.Reason != "":
		result.Messages = append(result.Messages, result.Reason)
	}
	return r.incompatible(subject, number, mode.String(), result.Messages)
}

// maxMessages bounds how many of a registry's messages an error repeats.
const maxMessages = 5

func (r *Registry) incompatible(subject string, number int, mode string, messages []string) *IncompatibleError {
	e := &IncompatibleError{Registry: r.name, Subject: subject, Mode: mode, Version: number}
	for _, m := range messages[:min(maxMessages, len(messages))] {
		e.Messages = append(e.Messages, r.told(m))
	}
	return e
}

// mode is the compatibility mode that counts for a subject: its own, or the
// registry's.
func (r *asking) mode(ctx context.Context, subject string) (mode sr.CompatibilityLevel, err error) {
	ask := func(subject string) error {
		return r.call(ctx, "the compatibility mode of subject "+subject, func(ctx context.Context) error {
			result := r.client.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0]
			mode = result.Level
			return result.Err
		})
	}
	err = ask(subject)
	if code := codeOf(err); code == noSubject || code == noSubjectConfig {
		err = ask(sr.GlobalSubject)
	}
	return mode, r.refused("the compatibility mode of subject "+subject, err)
}

// register registers a schema under a subject.
func (r *asking) register(ctx context.Context, subject string, s sr.Schema) (sr.SubjectSchema, error) {
	what := "registering the schema under subject " + subject
	found := sr.SubjectSchema{Subject: subject, Schema: s}
	err := r.call(ctx, what, func(ctx context.Context) (err error) {
		found.ID, err = r.client.RegisterSchema(ctx, subject, s, -1, -1)
		return err
	})
	if statusOf(err) == http.StatusConflict {
		mode, modeErr := r.mode(ctx, subject)
		if modeErr != nil {
			return found, modeErr
		}
		return found, r.incompatible(subject, 0, mode.String(), []string{err.Error()})
	}
	return found, r.refused(what, err)
}
