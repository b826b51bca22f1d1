package operate

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"github.com/sluicestream/sluice/env"
)

// maxProfile bounds the time that a CPU profile or a trace may take.
const maxProfile = 5 * time.Minute

// profiles serves what `go tool pprof` and `go tool trace` ask for. It is not
// net/http/pprof, which adds itself to every program's default server, and
// which shows the command line, where people put passwords.
type profiles struct{ clock env.Clock }

func (p profiles) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", p.list)
	mux.HandleFunc("GET /debug/pprof/{name}", p.snapshot)
	mux.HandleFunc("GET /debug/pprof/profile", p.during(30*time.Second, func(w http.ResponseWriter) (func(), error) {
		return pprof.StopCPUProfile, pprof.StartCPUProfile(w)
	}))
	mux.HandleFunc("GET /debug/pprof/trace", p.during(time.Second, func(w http.ResponseWriter) (func(), error) {
		return trace.Stop, trace.Start(w)
	}))
}

func (profiles) list(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("profile?seconds=30    CPU, for `go tool pprof`\ntrace?seconds=1       for `go tool trace`\n")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&b, "%-21s %d; with ?debug=1 as text\n", p.Name(), p.Count())
	}
	text(w, http.StatusOK, b.String())
}

// snapshot writes a profile as of now.
func (profiles) snapshot(w http.ResponseWriter, r *http.Request) {
	profile := pprof.Lookup(r.PathValue("name"))
	if profile == nil {
		text(w, http.StatusNotFound, "no such profile; /debug/pprof/ lists them\n")
		return
	}
	debug, err := strconv.Atoi(r.FormValue("debug"))
	if err != nil || debug < 0 || debug > 2 {
		debug = 0
	}
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		attach(w, profile.Name())
	}
	profile.WriteTo(w, debug)
}

// during profiles for as many seconds as the request says.
func (p profiles) during(usual time.Duration, start func(http.ResponseWriter) (stop func(), err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		length := usual
		if given := r.FormValue("seconds"); given != "" {
			seconds, err := strconv.ParseFloat(given, 64)
			if err != nil || !(seconds > 0 && seconds <= maxProfile.Seconds()) {
				text(w, http.StatusBadRequest, fmt.Sprintf("seconds=%.20q: a number above 0, at most %.0f\n", given, maxProfile.Seconds()))
				return
			}
			length = time.Duration(seconds * float64(time.Second))
		}
		attach(w, "profile")
		if err := extend(w, p.clock.Now().Add(length+answerTimeout)); err != nil {
			text(w, http.StatusInternalServerError, err.Error()+"\n")
			return
		}
		stop, err := start(w)
		if err != nil {
			w.Header().Del("Content-Disposition")
			text(w, http.StatusConflict, err.Error()+"; try again when it has ended\n")
			return
		}
		defer stop()
		env.Pause(r.Context(), p.clock, length)
	}
}

// extend moves a request's deadlines, which would cut a long answer short.
func extend(w http.ResponseWriter, until time.Time) error {
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(until); err != nil {
		return err
	}
	return c.SetWriteDeadline(until)
}

// attach says that the answer is a file.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}
