package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
)

// target is a folder that one task of a job delivers to.
//
// A delivery is a file with the rows, then a note of what was delivered, each
// written aside, synced and linked to its name, which fails if the name is
// taken. The note with the highest place is the sink's record. A crash between
// the two leaves a file that the next try finds to be its own; a deliverer that
// was suspended in between adds a lower note, which changes nothing.
type target struct {
	env       *env.Env
	log       *slog.Logger
	path      string
	hidden    string
	key       connector.RecordKey
	csv       bool
	extension string
}

// Close implements [connector.Target].
func (t *target) Close() error { return nil }

// Record implements [connector.Target].
func (t *target) Record(ctx context.Context) (*connector.SinkRecord, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made, err := t.readMade()
	if made == nil || err != nil {
		return nil, err
	}
	// A note that is listed may be tidied away before it is read, but only
	// once there is a higher one.
	for range maxLooks {
		places, err := t.notes()
		if err != nil {
			return nil, err
		}
		if len(places) == 0 {
			return made.record(), nil
		}
		n, err := t.readNote(places[len(places)-1])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return n.record(), nil
	}
	return nil, fmt.Errorf("the notes in %s change faster than they can be read", t.hidden)
}

// maxLooks bounds how often a record is looked for while others deliver.
const maxLooks = 10

// Make implements [connector.Target]. It refuses a folder that is another
// sink's, or holds deliveries of which there is no record.
func (t *target) Make(ctx context.Context, first connector.SinkRecord) (connector.SinkRecord, error) {
	found, err := t.Record(ctx)
	if err != nil {
		return connector.SinkRecord{}, err
	}
	if found != nil {
		return *found, nil
	}
	if err := t.refuseStrangers(); err != nil {
		return connector.SinkRecord{}, err
	}
	if err := makeFolder(t.env.Files, t.hidden); err != nil {
		return connector.SinkRecord{}, err
	}
	body, err := encode(madeBy(t.key, first))
	if err != nil {
		return connector.SinkRecord{}, err
	}
	if _, err := t.placeBytes(body, place{}, t.recordPath()); err != nil {
		return connector.SinkRecord{}, err
	}
	found, err = t.Record(ctx)
	if err == nil && found == nil {
		err = fmt.Errorf("%s is gone right after it was made", t.recordPath())
	}
	if err != nil {
		return connector.SinkRecord{}, err
	}
	return *found, nil
}

// refuseStrangers makes sure that nothing was delivered here before.
func (t *target) refuseStrangers() error {
	for _, folder := range []string{t.path, t.hidden} {
		entries, err := t.env.Files.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if _, ok := parsePlace(e.Name()); ok {
				return fmt.Errorf("%w: %s holds %s, a delivery, but %s is missing: restore it, or choose a new folder", connector.ErrRecord, t.path, filepath.Join(folder, e.Name()), t.recordPath())
			}
		}
	}
	return nil
}

// Deliver implements [connector.Target].
func (t *target) Deliver(ctx context.Context, d *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	found, err := t.Record(ctx)
	if err != nil {
		return connector.Disagree, nil, err
	}
	if verdict := d.Decide(found); verdict != connector.Apply {
		return verdict, found, nil
	}
	if found == nil {
		return connector.Disagree, nil, nil // without a record nothing may be written
	}
	at := placeOf(d.Record)
	for _, step := range []func(context.Context, *connector.Delivery, place) (bool, error){t.deliverRows, t.deliverNote} {
		same, err := step(ctx, d, at)
		if err != nil {
			return connector.Disagree, found, fmt.Errorf("delivering %s to %s: %w", at, t.path, err)
		}
		if !same {
			t.log.Error("something else has been delivered at this position", "sink", t.key.Sink, "folder", t.path, "position", at)
			return connector.Disagree, found, nil
		}
	}
	t.tidy(at)
	return connector.Apply, found, nil
}

// deliverRows puts the rows into a file of their own, if there are any; false
// if another file has its name.
func (t *target) deliverRows(ctx context.Context, d *connector.Delivery, at place) (same bool, err error) {
	w := &rowWriter{target: t, at: at}
	err = w.writeAll(ctx, d)
	if w.file == nil {
		return true, err
	}
	defer t.env.Files.Remove(w.path)
	if err := closeDurable(w.file, err); err != nil {
		return false, err
	}
	return t.place(w.path, filepath.Join(t.path, at.String()+t.extension))
}

// deliverNote notes what was delivered; false if something else was.
func (t *target) deliverNote(_ context.Context, d *connector.Delivery, at place) (same bool, err error) {
	body, err := encode(noteOf(t.key, d.Record))
	if err != nil {
		return false, err
	}
	if same, err = t.placeBytes(body, at, t.notePath(at)); same || err != nil {
		return same, err
	}
	n, err := t.readNote(at)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // tidied away by a later delivery, which came after this one's
	}
	if err != nil {
		return false, err
	}
	return n.ID == d.Record.ID && n.Hash == d.Record.Manifest, nil
}

// rowWriter writes a delivery's rows to a file that it makes with the first.
type rowWriter struct {
	target *target
	at     place
	path   string
	file   env.File
}

func (w *rowWriter) writeAll(ctx context.Context, d *connector.Delivery) error {
	var render renderer
	var buf []byte
	n := 0
	for row, err := range d.Rows {
		if err != nil {
			return err
		}
		if w.file == nil {
			if render, err = newRenderer(d, w.target.csv); err != nil {
				return err
			}
			if w.path, w.file, err = w.target.createAside(w.at); err != nil {
				return err
			}
			buf = render.header(make([]byte, 0, writeBuffer+writeBuffer/4))
		}
		if buf, err = render.row(buf, &row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		n++
		if len(buf) < writeBuffer {
			continue
		}
		if err := w.write(ctx, buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	return w.write(ctx, buf)
}

func (w *rowWriter) write(ctx context.Context, buf []byte) error {
	if err := ctx.Err(); err != nil || len(buf) == 0 {
		return err
	}
	_, err := w.file.Write(buf)
	return err
}

// writeBuffer is how many bytes are written at a time.
const writeBuffer = 64 << 10

// tidy removes the notes before a place, and what interrupted deliveries left.
// What can't be removed is tried again at the next delivery.
func (t *target) tidy(at place) {
	entries, err := t.env.Files.ReadDir(t.hidden)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if p, ok := parsePlace(trimAside(name)); ok && p.before(at) {
			if err := t.env.Files.Remove(filepath.Join(t.hidden, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.log.Warn("a file that is not needed any more stays", "sink", t.key.Sink, "file", filepath.Join(t.hidden, name), "error", err)
			}
		}
	}
}
