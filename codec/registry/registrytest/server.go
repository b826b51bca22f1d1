package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/sluicestream/sluice/codec"
)

// Server is a schema registry in this process.
type Server struct {
	// URL is where it answers.
	URL string

	server   *httptest.Server
	mu       sync.Mutex
	schemas  []schema          // by id, from 1 on
	subjects map[string][]int  // the ids of a subject's versions, from 1 on
	modes    map[string]string // by subject; "" is the registry's own
	requests []string
	fail     func(q *http.Request) (status int)
}

// schema is what is registered.
type schema struct {
	Text       string      `json:"schema"`
	Format     string      `json:"schemaType,omitempty"`
	References []reference `json:"references,omitempty"`
}

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Start starts a registry that ends with the test.
func Start(t testing.TB) *Server {
	s := Open()
	t.Cleanup(s.Close)
	return s
}

// Open starts a registry that is empty, and whose mode is BACKWARD.
func Open() *Server {
	s := &Server{subjects: map[string][]int{}, modes: map[string]string{"": Backward}}
	s.server = httptest.NewServer(s.handler())
	s.URL = s.server.URL
	return s
}

// Close ends the registry.
func (s *Server) Close() { s.server.Close() }

// Fail has every request asked before it is answered: what isn't 0 is the status
// of the answer, or a registry's own code of an error, such as 40403. Nil ends it.
func (s *Server) Fail(f func(q *http.Request) (status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Requests returns the requests so far, such as "GET /schemas/ids/1".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// handler answers requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(pattern string, f func(q *http.Request) (body any, status int, err error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
			s.mu.Lock()
			body, status, err := f(q)
			s.mu.Unlock()
			if err != nil {
				body = map[string]any{"error_code": status, "message": err.Error()}
			}
			w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
			w.WriteHeader(httpStatus(status))
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	answer("GET /schemas/ids/{id}", s.byID)
	answer("GET /subjects", s.list)
	answer("GET /subjects/{subject}/versions", s.versions)
	answer("GET /subjects/{subject}/versions/{version}", s.byVersion)
	answer("POST /subjects/{subject}/versions", s.register)
	answer("POST /subjects/{subject}", s.lookUp)
	answer("POST /compatibility/subjects/{subject}/versions/{version}", s.compare)
	answer("POST /compatibility/subjects/{subject}/versions", s.compare)
	answer("GET /config", s.mode)
	answer("GET /config/{subject}", s.mode)
	answer("PUT /config", s.setMode)
	answer("PUT /config/{subject}", s.setMode)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, q.Method+" "+q.URL.EscapedPath())
		fail := s.fail
		s.mu.Unlock()
		if fail != nil {
			if status := fail(q); status != 0 {
				w.WriteHeader(httpStatus(status))
				fmt.Fprintf(w, `{"error_code":%d,"message":"as the test wants it"}`, status)
				return
			}
		}
		mux.ServeHTTP(w, q)
	})
}

// httpStatus is the status that goes with a registry's own code: 404 with 40401.
func httpStatus(code int) int {
	if code > 999 {
		return code / 100
	}
	return code
}

// errorf returns an answer that refuses.
func errorf(code int, format string, args ...any) (any, int, error) {
	return nil, code, fmt.Errorf(format, args...)
}

func (s *Server) byID(q *http.Request) (any, int, error) {
	id, err := strconv.Atoi(q.PathValue("id"))
	if err != nil || id < 1 || id > len(s.schemas) {
		return errorf(40403, "schema %s not found", q.PathValue("id"))
	}
	return s.schemas[id-1], 200, nil
}

func (s *Server) list(*http.Request) (any, int, error) {
	names := []string{}
	for name := range s.subjects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, 200, nil
}

func (s *Server) versions(q *http.Request) (any, int, error) {
	ids := s.subjects[q.PathValue("subject")]
	if ids == nil {
		return errorf(40401, "subject '%s' not found", q.PathValue("subject"))
	}
	numbers := []int{}
	for i := range ids {
		numbers = append(numbers, i+1)
	}
	return numbers, 200, nil
}

// numberOf returns the version that a request names.
func (s *Server) numberOf(q *http.Request) (number int, ok bool) {
	ids := s.subjects[q.PathValue("subject")]
	number, err := strconv.Atoi(q.PathValue("version"))
	if q.PathValue("version") == "latest" {
		number, err = len(ids), nil
	}
	return number, err == nil && number >= 1 && number <= len(ids)
}

func (s *Server) byVersion(q *http.Request) (any, int, error) {
	subject := q.PathValue("subject")
	if s.subjects[subject] == nil {
		return errorf(40401, "subject '%s' not found", subject)
	}
	number, ok := s.numberOf(q)
	if !ok {
		return errorf(40402, "version %s not found", q.PathValue("version"))
	}
	return s.told(subject, number), 200, nil
}

// told is how a version is told.
func (s *Server) told(subject string, number int) any {
	id := s.subjects[subject][number-1]
	return struct {
		Subject string `json:"subject"`
		Version int    `json:"version"`
		ID      int    `json:"id"`
		schema
	}{subject, number, id, s.schemas[id-1]}
}

// asked reads the schema of a request.
func (s *Server) asked(q *http.Request) (asked schema, now judged, err error) {
	if err := json.NewDecoder(q.Body).Decode(&asked); err != nil {
		return asked, nil, err
	}
	if asked.Format == "AVRO" {
		asked.Format = ""
	}
	now, err = s.judge(asked)
	return asked, now, err
}

// judge makes a schema comparable.
func (s *Server) judge(one schema) (judged, error) {
	full, err := s.resolve(one)
	if err != nil {
		return nil, err
	}
	return judge(full)
}

// resolve returns a schema with what it refers to.
func (s *Server) resolve(one schema) (*codec.Schema, error) {
	out := &codec.Schema{Format: codec.FormatAvro, Text: one.Text}
	if one.Format != "" {
		out.Format = codec.Format(one.Format)
	}
	for _, r := range one.References {
		ids := s.subjects[r.Subject]
		if r.Version < 1 || r.Version > len(ids) {
			return nil, fmt.Errorf("no version %d of subject %s", r.Version, r.Subject)
		}
		to, err := s.resolve(s.schemas[ids[r.Version-1]-1])
		if err != nil {
			return nil, err
		}
		out.References = append(out.References, codec.Reference{Name: r.Name, Schema: to})
	}
	return out, nil
}

func same(a, b schema) bool {
	return a.Text == b.Text && a.Format == b.Format && slices.Equal(a.References, b.References)
}

// find returns the version of a subject that has a schema; 0 for none.
func (s *Server) find(subject string, asked schema) int {
	return 1 + slices.IndexFunc(s.subjects[subject], func(id int) bool { return same(s.schemas[id-1], asked) })
}

func (s *Server) lookUp(q *http.Request) (any, int, error) {
	subject := q.PathValue("subject")
	asked, _, err := s.asked(q)
	switch {
	case err != nil:
		return errorf(42201, "invalid schema: %v", err)
	case s.subjects[subject] == nil:
		return errorf(40401, "subject '%s' not found", subject)
	case s.find(subject, asked) == 0:
		return errorf(40403, "schema not found")
	}
	return s.told(subject, s.find(subject, asked)), 200, nil
}

func (s *Server) register(q *http.Request) (any, int, error) {
	subject := q.PathValue("subject")
	asked, now, err := s.asked(q)
	if err != nil {
		return errorf(42201, "invalid schema: %v", err)
	}
	if number := s.find(subject, asked); number > 0 {
		return map[string]int{"id": s.subjects[subject][number-1]}, 200, nil
	}
	mode, ids := s.modeOf(subject), s.subjects[subject]
	if !transitive(mode) && len(ids) > 0 {
		ids = ids[len(ids)-1:]
	}
	for _, id := range ids {
		if messages, err := s.clash(mode, now, id); err != nil || len(messages) > 0 {
			return errorf(409, "schema being registered is incompatible with an earlier schema for subject \"%s\": %v %v", subject, messages, err)
		}
	}
	id := 1 + slices.IndexFunc(s.schemas, func(known schema) bool { return same(known, asked) })
	if id == 0 {
		s.schemas = append(s.schemas, asked)
		id = len(s.schemas)
	}
	s.subjects[subject] = append(s.subjects[subject], id)
	return map[string]int{"id": id}, 200, nil
}

// clash returns what a mode has against a new schema beside that of an id.
func (s *Server) clash(mode string, now judged, id int) ([]string, error) {
	earlier, err := s.judge(s.schemas[id-1])
	if err != nil {
		return nil, err
	}
	return clash(mode, now, earlier), nil
}

func (s *Server) compare(q *http.Request) (any, int, error) {
	subject := q.PathValue("subject")
	_, now, err := s.asked(q)
	if err != nil {
		return errorf(42201, "invalid schema: %v", err)
	}
	ids := s.subjects[subject]
	if q.PathValue("version") != "" {
		number, ok := s.numberOf(q)
		if !ok {
			return errorf(40402, "version %s not found", q.PathValue("version"))
		}
		ids = ids[number-1 : number]
	}
	messages := []string{}
	for _, id := range ids {
		found, err := s.clash(s.modeOf(subject), now, id)
		if err != nil {
			return errorf(50001, "%v", err)
		}
		messages = append(messages, found...)
	}
	answer := map[string]any{"is_compatible": len(messages) == 0}
	if q.URL.Query().Get("verbose") == "true" {
		answer["messages"] = messages
	}
	return answer, 200, nil
}

// modeOf is the mode that counts for a subject.
func (s *Server) modeOf(subject string) string {
	if mode, ok := s.modes[subject]; ok {
		return mode
	}
	return s.modes[""]
}

func (s *Server) mode(q *http.Request) (any, int, error) {
	subject := q.PathValue("subject")
	mode, ok := s.modes[subject]
	if !ok && q.URL.Query().Get("defaultToGlobal") != "true" {
		return errorf(40408, "subject '%s' does not have subject-level compatibility configured", subject)
	}
	if !ok {
		mode = s.modes[""]
	}
	return map[string]string{"compatibilityLevel": mode}, 200, nil
}

func (s *Server) setMode(q *http.Request) (any, int, error) {
	var asked struct {
		Compatibility string `json:"compatibility"`
	}
	if err := json.NewDecoder(q.Body).Decode(&asked); err != nil || !slices.Contains(Modes(), asked.Compatibility) {
		return errorf(42203, "invalid compatibility level")
	}
	s.modes[q.PathValue("subject")] = asked.Compatibility
	return asked, 200, nil
}
