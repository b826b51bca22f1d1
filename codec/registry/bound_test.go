package registry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/connector"
)

// TestEndsWithWhoAsks: a registry that takes requests and answers none is waited
// for no longer than the one who asks would have it.
func TestEndsWithWhoAsks(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }))
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := open(t, registry.URLs(h.URL)).Schema(ctx, 1)
	if !errors.Is(err, connector.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), "; start again once the registry answers") {
		t.Error(err)
	}
}
