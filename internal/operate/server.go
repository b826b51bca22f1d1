package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/vitals"
)

// What one server takes on: those who ask are a few probes, scrapers and
// people, and none of them may hold up a job.
const (
	maxConnections  = 256
	maxScrapes      = 4
	maxHeaderBytes  = 16 << 10
	headerTimeout   = 5 * time.Second  // to send a request's header
	requestTimeout  = 10 * time.Second // to send it whole
	answerTimeout   = 30 * time.Second // to take the answer; profiles have their own
	idleTimeout     = 2 * time.Minute  // above the usual scrape interval of a minute
	shutdownTimeout = 2 * time.Second  // for answers under way
)

// ListenError says that an address can't be listened on.
type ListenError struct {
	Job     string
	Address string
	Cause   error
}

// Error implements error.
func (e *ListenError) Error() string {
	return fmt.Sprintf("%s: can't serve metrics and health on %s: %v; `job run --listen` takes another address, such as localhost:7071", e.Job, e.Address, e.Cause)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Cause }

// Listen opens the address, as host:port, for [Service.Serve]. The error is a
// *[ListenError].
func Listen(ctx context.Context, job, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &ListenError{job, address, err}
	}
	return l, nil
}

// Service is what is served of a job.
type Service struct {
	Job     string
	Board   *vitals.Board
	Metrics prometheus.Gatherer // what /metrics shows
	Clock   env.Clock
	Log     *slog.Logger
}

// Serve answers requests until ctx ends, and then closes the listener. Answers
// under way have two seconds. The error is nil, or why it could not go on.
func (s Service) Serve(ctx context.Context, l net.Listener) error {
	server := s.server(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("%s: serving metrics and health on %s ended: %w", s.Job, l.Addr(), err)
	case <-ctx.Done():
	}
	s.shutdown(context.WithoutCancel(ctx), server)
	<-ended
	return nil
}

// shutdown ends the server, first gently.
func (s Service) shutdown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := s.Clock.NewTimer(shutdownTimeout)
	defer patience.Stop()
	go func() {
		select {
		case <-patience.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}

func (s Service) server(ctx context.Context) *http.Server {
	var open atomic.Int64
	return &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > maxConnections {
					c.Close()
				}
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
	}
}

// paths are what is served, as the list at / has it.
const paths = `/metrics                   for Prometheus
/healthz                   200 while the process works, else 503 and the reason
/readyz                    200 while it runs the job or stands by for it, else 503 and the reason
/debug/pprof/              profiles of the process
`

// Handler returns the pages by themselves, without a server.
func (s Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, "sluice job "+label(s.Job)+"\n\n"+paths)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		ErrorHandling:       promhttp.ContinueOnError, // one metric that can't be read must not hide the others
		ErrorLog:            metricsLog{s.Log},
	}))
	mux.HandleFunc("GET /healthz", s.check(vitals.Snapshot.Sick))
	mux.HandleFunc("GET /readyz", s.check(vitals.Snapshot.Unready))
	profiles{s.Clock}.register(mux)
	return mux
}

// check answers with what the job is now, and with why that isn't fine.
func (s Service) check(wrong func(vitals.Snapshot) string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		now := s.Board.Snapshot()
		why := wrong(now)
		switch {
		case why != "":
			text(w, http.StatusServiceUnavailable, why+"\n")
		case now.Waiting != "":
			text(w, http.StatusOK, fmt.Sprintf("%s, waiting: %s\n", now.Role, now.Waiting))
		default:
			text(w, http.StatusOK, string(now.Role)+"\n")
		}
	}
}

func text(w http.ResponseWriter, code int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	io.WriteString(w, body)
}

// metricsLog is where errors of single metrics go.
type metricsLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok && !errors.Is(err, context.Canceled) {
			l.log.Warn("a metric can't be shown", "error", err)
		}
	}
}
