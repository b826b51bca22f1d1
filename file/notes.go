package file

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicestream/sluice/connector"
)

// place is how far a sink has been delivered: up to a position, and some parts
// of the delivery behind it.
type place struct {
	position connector.Position
	part     int
}

func placeOf(r connector.SinkRecord) place { return place{r.Position, r.Part} }

func (p place) before(q place) bool {
	return p.position < q.position || p.position == q.position && p.part < q.part
}

// String is the place as a file's name has it: names sort as places do.
func (p place) String() string {
	if p.part == 0 {
		return fmt.Sprintf("%020d", p.position)
	}
	return fmt.Sprintf("%020d_%05d", p.position, p.part)
}

// parsePlace reads the place at a file name's beginning.
func parsePlace(name string) (place, bool) {
	const digits, partDigits = 20, 5
	position, ok := leadingNumber(name, digits)
	if !ok {
		return place{}, false
	}
	p := place{position: connector.Position(position)}
	if rest, ok := strings.CutPrefix(name[digits:], "_"); ok {
		if part, ok := leadingNumber(rest, partDigits); ok {
			p.part = int(part)
		}
	}
	return p, true
}

func leadingNumber(s string, digits int) (uint64, bool) {
	if len(s) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:digits], 10, 64)
	return n, err == nil
}

// noteFormat is the format of the hidden files. A folder of another is refused.
const noteFormat = 1

// made is record.json: whose folder it is, and where its deliveries start.
type made struct {
	Format int                `json:"format"`
	JobID  string             `json:"job_id"`
	Task   string             `json:"task"`
	Sink   string             `json:"sink"`
	ID     string             `json:"id"`
	Start  connector.Position `json:"start"`
	Job    string             `json:"job"`
	Target string             `json:"target"`
	Live   uint64             `json:"live"`
	Branch string             `json:"branch"`
	Epoch  uint64             `json:"epoch"`
	Hash   string             `json:"manifest"`
}

func madeBy(k connector.RecordKey, r connector.SinkRecord) made {
	return made{noteFormat, k.JobID, k.Task, k.Sink, r.ID, r.Position, r.Job, r.Target, r.Live, r.Branch, r.Epoch, r.Manifest}
}

func (m *made) record() *connector.SinkRecord {
	return &connector.SinkRecord{Position: m.Start, ID: m.ID, Job: m.Job, Target: m.Target, Live: m.Live, Branch: m.Branch, Epoch: m.Epoch, Manifest: m.Hash}
}

// note is <place>.json: what was delivered last.
type note struct {
	Format   int                `json:"format"`
	JobID    string             `json:"job_id"`
	Task     string             `json:"task"`
	Sink     string             `json:"sink"`
	ID       string             `json:"id"`
	Position connector.Position `json:"position"`
	Part     int                `json:"part"`
	Job      string             `json:"job"`
	Target   string             `json:"target"`
	Live     uint64             `json:"live"`
	Branch   string             `json:"branch"`
	Epoch    uint64             `json:"epoch"`
	Hash     string             `json:"manifest"`
}

func noteOf(k connector.RecordKey, r connector.SinkRecord) note {
	return note{noteFormat, k.JobID, k.Task, k.Sink, r.ID, r.Position, r.Part, r.Job, r.Target, r.Live, r.Branch, r.Epoch, r.Manifest}
}

func (n *note) record() *connector.SinkRecord {
	return &connector.SinkRecord{
		Position: n.Position, Part: n.Part, ID: n.ID, Job: n.Job, Target: n.Target, Live: n.Live, Branch: n.Branch, Epoch: n.Epoch, Manifest: n.Hash,
	}
}

// encode writes a hidden file's content. It is one line.
func encode[N made | note](n N) ([]byte, error) {
	b, err := json.Marshal(n)
	return append(b, '\n'), err
}

// hiddenFolder holds the record, the notes, and files that are being written.
const hiddenFolder = ".sluice"

func (t *target) recordPath() string { return filepath.Join(t.hidden, "record.json") }

func (t *target) notePath(p place) string { return filepath.Join(t.hidden, p.String()+".json") }

// notes lists the places of the notes, in order.
func (t *target) notes() ([]place, error) {
	entries, err := t.env.Files.ReadDir(t.hidden)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, e := range entries {
		if p, ok := parsePlace(e.Name()); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	return places, nil
}

// readMade reads record.json; nil if there is none.
func (t *target) readMade() (*made, error) {
	var m made
	err := t.read(t.recordPath(), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = t.own(connector.RecordKey{JobID: m.JobID, Task: m.Task, Sink: m.Sink}, m.Job)
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// own refuses a folder that is another sink's.
func (t *target) own(found connector.RecordKey, job string) error {
	if found == t.key {
		return nil
	}
	return fmt.Errorf("%w: the folder %s is another sink's: expected job %s, task %s, sink %s; found job %s (%s), task %s, sink %s; give each sink a folder of its own",
		connector.ErrRecord, t.path, t.key.JobID, t.key.Task, t.key.Sink, found.JobID, job, found.Task, found.Sink)
}

func (t *target) readNote(p place) (*note, error) {
	var n note
	if err := t.read(t.notePath(p), &n); err != nil {
		return nil, err
	}
	if found := (place{n.Position, n.Part}); found != p {
		return nil, fmt.Errorf("%w: %s is damaged: it speaks of %s", connector.ErrRecord, t.notePath(p), found)
	}
	return &n, t.own(connector.RecordKey{JobID: n.JobID, Task: n.Task, Sink: n.Sink}, n.Job)
}

// maxNote bounds a hidden file: names and hashes, with much to spare.
const maxNote = 64 << 10

// read reads a hidden file.
func (t *target) read(path string, n interface{ version() int }) error {
	f, err := t.env.Files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // reading it may never end
		return fmt.Errorf("%w: %s is no regular file", connector.ErrRecord, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxNote+1))
	if err != nil {
		return err
	}
	if len(b) > maxNote {
		return fmt.Errorf("%w: %s is damaged: it has more than %d bytes", connector.ErrRecord, path, maxNote)
	}
	if err := json.Unmarshal(b, n); err != nil {
		return fmt.Errorf("%w: %s is damaged: %w; restore it, or choose a new folder for the sink", connector.ErrRecord, path, err)
	}
	if n.version() != noteFormat {
		return fmt.Errorf("%w: %s was written in format %d, this build knows format %d only", connector.ErrRecord, path, n.version(), noteFormat)
	}
	return nil
}

func (m *made) version() int { return m.Format }
func (n *note) version() int { return n.Format }
