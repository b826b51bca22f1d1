package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// decisions remember how transactions were to end, before their ends are written
// partition by partition: after a kill in between, the rest is ended the same way.
// They are lines of a file, "producer epoch 1" for a commit, 0 for an abort and -1
// for what is open again; a producer's last line counts.
type decisions struct {
	path string
	sync bool

	mu    sync.Mutex
	file  *os.File
	size  int
	known map[int64]decision
	fault error // the first that kept a decision from being noted
}

// decision is how a producer's transaction is to end.
type decision struct {
	epoch  int16
	commit bool
}

// maxDecisions bounds the file, in bytes, before it is written anew with the last
// decisions alone.
const maxDecisions = 1 << 20

// readDecisions reads those of the last run. A last line that a kill has cut off is
// one of a transaction whose end was not begun.
func readDecisions(path string) (map[int64]decision, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[int64]decision{}
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var producer int64
		var epoch int16
		var end int
		if _, err := fmt.Sscanf(string(line), "%d %d %d\n", &producer, &epoch, &end); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", path, line, err)
		}
		if delete(known, producer); end >= 0 {
			known[producer] = decision{epoch, end == 1}
		}
	}
	return known, nil
}

// noteDecisions begins a new file, and has the cluster note its decisions there.
func noteDecisions(path string, sync bool, cluster *kfake.Cluster) (*decisions, error) {
	d := &decisions{path: path, sync: sync, known: map[int64]decision{}}
	if err := d.rewrite(); err != nil {
		return nil, err
	}
	cluster.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		end := r.(*kmsg.EndTxnRequest)
		return nil, nil, !d.note(end.ProducerID, end.ProducerEpoch, end.Commit)
	})
	// A client of before Kafka 4 may use one epoch for several transactions, and says
	// so when it begins one.
	cluster.ControlKey(int16(kmsg.AddPartitionsToTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		begin := r.(*kmsg.AddPartitionsToTxnRequest)
		ok := d.forget(begin.ProducerID)
		for _, t := range begin.Transactions {
			ok = ok && d.forget(t.ProducerID)
		}
		return nil, nil, !ok
	})
	return d, nil
}

// note notes a decision. Where that fails, the request gets no answer.
func (d *decisions) note(producer int64, epoch int16, commit bool) (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[producer] = decision{epoch, commit}
	return d.write(producer)
}

// forget notes that a producer begins a transaction.
func (d *decisions) forget(producer int64) (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.known[producer]; !ok {
		return true
	}
	delete(d.known, producer)
	return d.write(producer)
}

// write appends a producer's line.
func (d *decisions) write(producer int64) (ok bool) {
	err := d.fault
	if err == nil {
		line := d.line(producer)
		d.size += len(line)
		_, err = d.file.WriteString(line)
	}
	if err == nil && d.sync {
		err = d.file.Sync()
	}
	if err == nil && d.size > maxDecisions {
		err = d.rewrite()
	}
	d.fault = err
	return err == nil
}

func (d *decisions) line(producer int64) string {
	last, ok := d.known[producer]
	switch {
	case !ok:
		return fmt.Sprintf("%d 0 -1\n", producer)
	case last.commit:
		return fmt.Sprintf("%d %d 1\n", producer, last.epoch)
	default:
		return fmt.Sprintf("%d %d 0\n", producer, last.epoch)
	}
}

// rewrite makes a file of the last decisions, in the old one's place.
func (d *decisions) rewrite() error {
	d.close()
	fresh, err := os.Create(d.path + ".new")
	if err != nil {
		return err
	}
	d.file, d.size = fresh, 0
	for producer := range d.known {
		n, err := fresh.WriteString(d.line(producer))
		if err != nil {
			return err
		}
		d.size += n
	}
	return os.Rename(fresh.Name(), d.path)
}

func (d *decisions) close() {
	if d != nil && d.file != nil {
		d.file.Close()
	}
}
