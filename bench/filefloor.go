package main

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// fileFloor is the job written by hand: a goroutine for each core decodes and
// counts, and once per second the rows that have changed are written to a new
// file. After a crash it would have to begin anew.
func fileFloor(t task) (sample, error) {
	dir, err := os.MkdirTemp(t.Dir, "floor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := newCounter(dir)
	paths := make(chan string, orderFiles)
	for i := range orderFiles {
		paths <- orderFile(ordersFolder(t.setting, t.Variant), i)
	}
	close(paths)
	var counting sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for i := range errs {
		counting.Go(func() {
			for path := range paths {
				errs[i] = errors.Join(errs[i], c.countFile(path))
			}
		})
	}
	if err := errors.Join(c.flushUntil(&counting), errors.Join(errs...)); err != nil {
		return nil, err
	}
	if expected := int64(t.scale(allOrders)); c.records.Load() != expected {
		return nil, fmt.Errorf("expected %d records, counted %d", expected, c.records.Load())
	}
	written, _, err := countOutput(filepath.Join(dir, "*.jsonl"))
	return sample{"flushes": float64(c.flushes), "output bytes": written}, err
}

// counter counts by key, in parts that each have a lock.
type counter struct {
	dir     string
	hash    maphash.Seed
	parts   [64]part
	records atomic.Int64
	flushes int
}

type part struct {
	mu      sync.Mutex
	rows    map[string]*row
	changed []*row
}

type row struct {
	key     string
	total   spend
	changed bool
}

func newCounter(dir string) *counter {
	c := &counter{dir: dir, hash: maphash.MakeSeed()}
	for i := range c.parts {
		c.parts[i].rows = map[string]*row{}
	}
	return c
}

func (c *counter) countFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	n := int64(0)
	var o order // outside of the loop: it is allocated, since its address goes to the decoder
	for lines.Scan() {
		o = order{}
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		c.parts[maphash.String(c.hash, o.User)%uint64(len(c.parts))].count(o)
		n++
	}
	c.records.Add(n)
	return lines.Err()
}

func (p *part) count(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rows[o.User]
	if r == nil {
		r = &row{key: o.User}
		p.rows[o.User] = r
	}
	r.total.count(o)
	if !r.changed {
		r.changed = true
		p.changed = append(p.changed, r)
	}
}

// flushUntil writes what has changed once per second, and when all is counted.
func (c *counter) flushUntil(counting *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		counting.Wait()
		close(done)
	}()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-second.C:
			if err := c.flush(); err != nil {
				return err
			}
		case <-done:
			return c.flush()
		}
	}
}

func (c *counter) flush() error {
	c.flushes++
	f, err := os.Create(filepath.Join(c.dir, fmt.Sprintf("%08d.jsonl", c.flushes)))
	if err != nil {
		return err
	}
	defer f.Close()
	var buf []byte
	for i := range c.parts {
		if buf, err = c.parts[i].appendChanged(buf[:0]); err != nil {
			return err
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// appendChanged appends a line for each row that has changed.
func (p *part) appendChanged(dst []byte) (_ []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.changed {
		dst = append(dst, `{"op":"put","key":`...)
		if dst, err = jsontext.AppendQuote(dst, r.key); err != nil {
			return nil, err
		}
		dst = append(dst, `,"row":{"Orders":`...)
		dst = strconv.AppendInt(dst, r.total.Orders, 10)
		dst = append(dst, `,"Cents":`...)
		dst = strconv.AppendInt(dst, r.total.Cents, 10)
		dst = append(dst, "}}\n"...)
		r.changed = false
	}
	p.changed = p.changed[:0]
	return dst, nil
}
