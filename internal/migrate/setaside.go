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

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
)

// SetAside is a file of entries that could not be carried over: a line of JSON
// says which migration it is of, and one for each entry has its key, its value
// and what went wrong. The file has its name only once it is whole.
type SetAside struct {
	env   *env.Env
	path  string
	tried string // the name until then
	file  env.File
	w     *bufio.Writer
	forms map[string]*rendering
}

// Migration says which migration a file of entries is of: the file of another
// one is not written over.
type Migration struct {
	Job   string `json:"job"`
	State string `json:"state"`
	// From stands for what is migrated, and how: the same for each try.
	From string `json:"from"`
}

type rendering struct {
	key, element, value func(dst, src []byte) (out, rest []byte, err error)
}

// NewSetAside begins a file. The error says so if the file of another migration
// has the name.
func NewSetAside(e *env.Env, path string, of Migration) (*SetAside, error) {
	header, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	if err := mayReplace(e.Files, path, header); err != nil {
		return nil, err
	}
	id, err := e.ID()
	if err != nil {
		return nil, err
	}
	s := &SetAside{env: e, path: path, forms: map[string]*rendering{}}
	s.tried = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+id)
	if s.file, err = e.Files.Create(s.tried); err != nil {
		return nil, err
	}
	s.w = bufio.NewWriter(s.file)
	s.w.Write(append(header, '\n'))
	return s, nil
}

// mayReplace tells whether a file is there that says it is of the same
// migration, or none.
func mayReplace(files env.FS, path string, header []byte) error {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	first := make([]byte, len(header))
	if _, err := io.ReadFull(f, first); err != nil || string(first) != string(header) {
		return fmt.Errorf("%s holds what another migration has set aside, or is another file: name a file that is not there", path)
	}
	return nil
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

// Commit makes the file durable under its name.
func (s *SetAside) Commit() error {
	err := s.w.Flush()
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = s.env.Files.Rename(s.tried, s.path)
	}
	if err == nil {
		err = s.env.Files.SyncDir(filepath.Dir(s.path))
	}
	return err
}

// Close gives the file up unless it was committed.
func (s *SetAside) Close() {
	s.file.Close()
	s.env.Files.Remove(s.tried) // fails once it has its name
}
