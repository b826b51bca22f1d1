package migrate

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// SetAside is a file of entries that could not be carried over: a line of JSON
// says which migration it is of, and one for each entry has its key, its value
// and what went wrong.
//
// It is written under a hidden name that its process owns, made durable before the
// manifest that leaves the entries out, and has its own name only behind that: so
// a process that was shut out meanwhile writes over nobody's file. One that dies in
// between leaves it to the next start; see [LeftAside].
type SetAside struct {
	env    *env.Env
	path   string
	of     Migration
	file   env.File
	w      *bufio.Writer
	forms  map[string]*rendering
	synced bool
}

// Migration says which migration a file of entries is of.
type Migration struct {
	Job   string `json:"job"`
	State string `json:"state"`
	// Version is the version that it makes, Owner who made it.
	Version string `json:"version"`
	Owner   string `json:"owner"`
}

// hidden is the name of a migration's file until it has its own.
func (m Migration) hidden(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+m.Owner)
}

type rendering struct {
	key, element, value func(dst, src []byte) (out, rest []byte, err error)
}

// NewSetAside begins a file. The error says so if something has its name.
func NewSetAside(e *env.Env, path string, of Migration) (*SetAside, error) {
	header, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	if err := Free(e.Files, path); err != nil {
		return nil, err
	}
	if err := e.Files.Remove(of.hidden(path)); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier try
		return nil, err
	}
	s := &SetAside{env: e, path: path, of: of, forms: map[string]*rendering{}}
	if s.file, err = e.Files.Create(of.hidden(path)); err != nil {
		return nil, err
	}
	s.w = bufio.NewWriter(s.file)
	s.w.Write(append(header, '\n'))
	return s, nil
}

// Free is an error if something has the name of a file to be.
func Free(files env.FS, path string) error {
	_, err := files.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s is there already, from another migration or as another file: name a file that is not there", path)
}

// Put appends an entry.
func (s *SetAside) Put(failed *carry.EntryError, stored state.Form, e *state.Entry) error {
	r := s.forms[stored.Name]
	if r == nil {
		r = &rendering{key: schema.JSON(stored.Key), value: schema.JSON(stored.Value)}
		if stored.Element != nil {
			r.element = schema.JSON(stored.Element)
		}
		s.forms[stored.Name] = r
	}
	line := struct {
		State    string         `json:"state"`
		Key      jsontext.Value `json:"key"`
		Element  jsontext.Value `json:"element,omitempty"`
		Value    jsontext.Value `json:"value"`
		Function string         `json:"function,omitempty"`
		Error    string         `json:"error"`
	}{State: stored.Name, Function: failed.Function, Error: failed.Cause.Error()}
	for _, part := range []struct {
		to     *jsontext.Value
		render func(dst, src []byte) (out, rest []byte, err error)
		src    []byte
	}{{&line.Key, r.key, e.Key}, {&line.Element, r.element, e.Element}, {&line.Value, r.value, e.Value}} {
		if part.render == nil {
			continue
		}
		text, _, err := part.render(nil, part.src)
		if err != nil {
			text, _ = json.Marshal(part.src) // it can't be read; its bytes are kept, as base64
		}
		*part.to = text
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = s.w.Write(append(data, '\n'))
	}
	return err
}

// Sync makes what was put durable, under the hidden name.
func (s *SetAside) Sync() error {
	err := s.w.Flush()
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = s.env.Files.SyncDir(filepath.Dir(s.path))
	}
	s.synced = err == nil
	return err
}

// Publish gives the file its name, once the manifest is there that leaves its
// entries out.
func (s *SetAside) Publish() error { return s.of.Publish(s.env.Files, s.path) }

// Close ends the writing, and gives the file up unless it was synced.
func (s *SetAside) Close() {
	s.file.Close()
	if !s.synced {
		s.env.Files.Remove(s.of.hidden(s.path))
	}
}

// Publish gives a migration's file its name.
func (m Migration) Publish(files env.FS, path string) error {
	err := files.Link(m.hidden(path), path) // which writes over nothing
	if err == nil {
		err = files.Remove(m.hidden(path))
	}
	if err == nil {
		err = files.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("the entries that were set aside are in %s, which can't have its name: %w", m.hidden(path), err)
	}
	return nil
}

// GiveUp removes a migration's file, which came to nothing.
func (m Migration) GiveUp(files env.FS, path string) error { return files.Remove(m.hidden(path)) }

// LeftAside are the migrations of a job's state whose files have not got their name.
func LeftAside(files env.FS, path, job, name string) (left []Migration, err error) {
	entries, err := files.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		owner, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(path)+"-")
		if !ok {
			continue
		}
		m, err := headerOf(files, filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			return nil, err
		}
		if m.Job == job && m.State == name && m.Owner == owner {
			left = append(left, m)
		}
	}
	return left, nil
}

// maxHeader bounds the line that a file begins with.
const maxHeader = 4096

// headerOf reads the line that a file begins with; that of another file is empty.
func headerOf(files env.FS, path string) (m Migration, err error) {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil // gone since it was listed
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxHeader)).ReadBytes('\n')
	if err != nil && err != io.EOF {
		return m, err
	}
	if json.Unmarshal(line, &m) != nil {
		return Migration{}, nil
	}
	return m, nil
}
