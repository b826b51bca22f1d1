package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sluicestream/sluice/env"
)

// The pauses between two requests that ask the same.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// asking is one thing that is asked of the registry, which may take several
// requests. Patience is for all of them.
type asking struct {
	*Registry
	waited time.Duration // from a request's first failure to its success, in all
}

// call makes a request until it is answered, or patience ends. An answer that
// refuses is an *[sr.ResponseError]; anything else is an *[Error].
func (r *asking) call(ctx context.Context, what string, request func(ctx context.Context) error) error {
	begin, pause := r.clock.Now(), firstPause
	for attempt := 1; ; attempt++ {
		err := request(ctx)
		spent := r.clock.Now().Sub(begin)
		refused, answered := errors.AsType[*sr.ResponseError](err)
		if err == nil || answered && !passing(refused.StatusCode) {
			if attempt > 1 {
				r.waited += spent
			}
			return err
		}
		if ctx.Err() != nil || r.waited+spent+pause > r.patience || untrusted(err) {
			return r.fault(what, err, attempt, spent)
		}
		if env.Pause(ctx, r.clock, pause) != nil {
			return r.fault(what, err, attempt, spent)
		}
		pause = min(2*pause, maxPause)
	}
}

// passing tells whether an HTTP status can be another one soon.
func passing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// untrusted tells whether a certificate is what stands between.
func untrusted(err error) bool {
	_, is := errors.AsType[*tls.CertificateVerificationError](err)
	return is
}

// fault is the error of a request that got no answer, or one that is of no use.
func (r *Registry) fault(what string, err error, attempts int, waited time.Duration) *Error {
	e := &Error{Registry: r.name, What: what, Attempts: attempts, Waited: waited}
	if refused, ok := errors.AsType[*sr.ResponseError](err); ok {
		e.Status, e.page = refused.StatusCode, isPage(refused.Raw)
		said := "a web page, which no registry answers with"
		if !e.page {
			said = r.told(refused.Error())
		}
		e.Cause = fmt.Errorf("HTTP status %d: %s", refused.StatusCode, said)
		return e
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.page = true
		err = fmt.Errorf("an answer that is no JSON, which no registry gives: %w", bad)
	}
	e.Cause = errors.New(r.told(err.Error()))
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			e.Cause = &ended{text: e.Cause.Error(), end: end}
		}
	}
	return e
}

// isPage tells whether a body is meant for a browser.
func isPage(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) }

// ended is the text of an error that the end of a context is the reason of.
type ended struct {
	text string
	end  error
}

// Error implements error.
func (e *ended) Error() string { return e.text }

// Unwrap returns the context's error.
func (e *ended) Unwrap() error { return e.end }

// maxTold bounds how much of what a registry says an error repeats.
const maxTold = 300

// told is what was said by others, in one line without secrets.
func (r *Registry) told(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " ")
	if len(text) > maxTold {
		text = strings.ToValidUTF8(text[:maxTold], "") + "…"
	}
	return text
}

// secretsOf are the forms in which what says who asks could be repeated, the
// longest first.
func secretsOf(user, password, token string) (all []string) {
	if password != "" {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	for _, s := range []string{password, token} {
		if s != "" {
			all = append(all, base64.StdEncoding.EncodeToString([]byte(s)), s)
		}
	}
	return all
}

// maxBody bounds what a registry may answer.
const maxBody = 16 << 20

// limited bounds the bodies of answers.
type limited struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (l limited) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := l.Transport.RoundTrip(q)
	if err == nil {
		answer.Body = &limitedBody{ReadCloser: answer.Body, left: maxBody}
	}
	return answer, err
}

type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("an answer of more than %d bytes", maxBody)
	}
	return n, err
}
