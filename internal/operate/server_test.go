package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving is a server under test.
type serving struct {
	url   string
	board *vitals.Board
	http  *http.Client
	stop  func() // and waits for its end
}

func serve(t *testing.T) *serving {
	t.Helper()
	l, err := Listen(t.Context(), "spend", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := busy()
	s := Service{Job: "spend", Board: b, Metrics: NewRegistry("spend", b), Clock: env.Real().Clock, Log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	transport := &http.Transport{}
	stopped := false
	v := &serving{"http://" + l.Addr().String(), b, &http.Client{Transport: transport}, func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		transport.CloseIdleConnections()
	}}
	t.Cleanup(v.stop)
	return v
}

func (v *serving) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	r, err := v.http.Get(v.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

func TestPages(t *testing.T) {
	v := serve(t)
	for _, x := range []struct {
		path string
		code int
		has  string
	}{
		{"/", 200, "/healthz"},
		{"/metrics", 200, `sluice_role{job_name="spend",role="running"} 1`},
		{"/healthz", 200, "running"},
		{"/readyz", 200, "running"},
		{"/nothing", 404, ""},
		{"/debug/pprof/", 200, "goroutine"},
		{"/debug/pprof/goroutine?debug=2", 200, "operate.(*serving).get"},
		{"/debug/pprof/heap", 200, "\x1f\x8b"}, // gzip
		{"/debug/pprof/profile?seconds=0.01", 200, "\x1f\x8b"},
		{"/debug/pprof/trace?seconds=0.01", 200, "go 1."},
		{"/debug/pprof/profile?seconds=301", 400, "at most 300"},
		{"/debug/pprof/profile?seconds=NaN", 400, "at most 300"},
		{"/debug/pprof/profile?seconds=-1", 400, "above 0"},
		{"/debug/pprof/none", 404, "/debug/pprof/ lists"},
		{"/debug/pprof/cmdline", 404, ""},
	} {
		if code, body := v.get(t, x.path); code != x.code || !strings.Contains(body, x.has) {
			t.Errorf("%s: %d %.200q, want %d with %q", x.path, code, body, x.code, x.has)
		}
	}
	r, err := v.http.Post(v.url+"/healthz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}

// Importing this package adds nothing to a program's default server.
func TestDefaultServerIsUntouched(t *testing.T) {
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline"} {
		r, _ := http.NewRequest("GET", path, nil)
		if _, pattern := http.DefaultServeMux.Handler(r); pattern != "" {
			t.Errorf("%s answers at the default server", path)
		}
	}
}

func TestChecks(t *testing.T) {
	for _, x := range []struct {
		role            vitals.Role
		healthz, readyz int
	}{
		{vitals.Starting, 200, 503},
		{vitals.Standby, 200, 200},
		{vitals.Restoring, 200, 503},
		{vitals.Running, 200, 200},
		{vitals.Stopping, 200, 503},
		{vitals.Stopped, 503, 503},
	} {
		v := serve(t)
		v.board.SetRole(x.role)
		for path, want := range map[string]int{"/healthz": x.healthz, "/readyz": x.readyz} {
			if code, body := v.get(t, path); code != want || !strings.Contains(body, string(x.role)) {
				t.Errorf("%s: %s: %d %s, want %d", x.role, path, code, body, want)
			}
		}
		v.stop()
	}
	v := serve(t)
	v.board.Wait("the disk is full")
	if code, body := v.get(t, "/healthz"); code != 200 || body != "running, waiting: the disk is full\n" {
		t.Errorf("/healthz: %d %s", code, body)
	}
}

// One profile at a time; the end of the job ends it, and no goroutine is left
// (which TestMain looks at).
func TestEndDuringProfile(t *testing.T) {
	v := serve(t)
	r, err := v.http.Get(v.url + "/debug/pprof/trace?seconds=300") // a trace begins with a header, so its start is seen
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if code, body := v.get(t, "/debug/pprof/trace?seconds=1"); code != 409 || !strings.Contains(body, "try again") {
		t.Errorf("a second trace: %d %.100q", code, body)
	}
	v.stop()
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Errorf("the trace was cut off: %v", err)
	}
}

// Whoever connects and says nothing doesn't hold up the end, and connections
// are bounded.
func TestConnections(t *testing.T) {
	v := serve(t)
	address := strings.TrimPrefix(v.url, "http://")
	var silent []net.Conn
	for range maxConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	extra, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	fmt.Fprint(extra, "GET / HTTP/1.0\r\n\r\n")
	if answer, _ := io.ReadAll(extra); len(answer) > 0 {
		t.Errorf("connection %d was answered", maxConnections+1)
	}
	v.stop()
	for _, c := range silent {
		if n, err := io.Copy(io.Discard, c); n > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a silent connection got %d bytes, %v", n, err)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := Listen(t.Context(), "spend", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen(t.Context(), "spend", l.Addr().String())
	var listen *ListenError
	if !errors.As(err, &listen) || !strings.Contains(err.Error(), "--listen") || !strings.HasPrefix(err.Error(), "spend: can't serve metrics and health on "+l.Addr().String()) {
		t.Errorf("%v", err)
	}
}

// The server says so when it can't go on.
func TestListenerBreaks(t *testing.T) {
	l, err := Listen(t.Context(), "spend", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	b := busy()
	s := Service{Job: "spend", Board: b, Metrics: NewRegistry("spend", b), Clock: env.Real().Clock, Log: slog.New(slog.DiscardHandler)}
	l.Close()
	if err := s.Serve(t.Context(), l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
