package main

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// order is a record of the files; they also hold a note, which nobody reads.
type order struct {
	ID    string    `json:"id"`
	User  string    `json:"user"`
	Shop  string    `json:"shop"`
	Cents int64     `json:"cents"`
	Items int64     `json:"items"`
	Paid  bool      `json:"paid"`
	At    time.Time `json:"at"`
}

func (o order) user() string { return o.User }

func (s *spend) count(o order) {
	s.Orders++
	s.Cents += o.Cents
}

const (
	allOrders  = 20_000_000
	orderFiles = 4
)

// ordersFolder is where the files of a distribution are.
func ordersFolder(s setting, distribution string) string {
	return filepath.Join(s.Dir, fmt.Sprintf("orders-%s-%d", distribution, s.scale(allOrders)))
}

// makeOrders writes the files, unless they are there.
func makeOrders(s setting, distribution string) error {
	folder := ordersFolder(s, distribution)
	if known, err := readSizes(folder); err == nil && slices.Equal(known, sizesIn(folder)) {
		return nil
	}
	draw, err := drawer(distribution, allKeys)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var writing sync.WaitGroup
	errs := make([]error, orderFiles)
	for i := range orderFiles {
		writing.Go(func() { errs[i] = writeOrders(orderFile(folder, i), i, s.scale(allOrders)/orderFiles, draw) })
	}
	writing.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	data, err := json.Marshal(sizesIn(folder))
	if err != nil {
		return err
	}
	return os.WriteFile(sizesFile(folder), data, 0o644)
}

func orderFile(folder string, i int) string {
	return filepath.Join(folder, fmt.Sprintf("orders-%d.jsonl", i))
}

// sizesFile holds the sizes of the files: they are whole if it is there.
func sizesFile(folder string) string { return filepath.Join(folder, "sizes.json") }

func readSizes(folder string) (sizes []int64, err error) {
	data, err := os.ReadFile(sizesFile(folder))
	if err != nil {
		return nil, err
	}
	return sizes, json.Unmarshal(data, &sizes)
}

func sizesIn(folder string) (sizes []int64) {
	for i := range orderFiles {
		size := int64(-1)
		if info, err := os.Stat(orderFile(folder, i)); err == nil {
			size = info.Size()
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func writeOrders(path string, file, n int, draw func(*rand.Rand) int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := newRandom(file)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var line []byte
	for i := range n {
		at = at.Add(time.Duration(r.IntN(1000)) * time.Microsecond)
		line = appendOrder(line[:0], r, file*n+i, draw(r), at)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func appendOrder(dst []byte, r *rand.Rand, id, key int, at time.Time) []byte {
	dst = append(dst, `{"id":"o-`...)
	dst = strconv.AppendInt(dst, int64(100_000_000+id), 10)
	dst = append(dst, `","user":"`...)
	dst = append(dst, userName(key)...)
	dst = append(dst, `","shop":"north-`...)
	dst = strconv.AppendInt(dst, int64(10+r.IntN(90)), 10)
	dst = append(dst, `","cents":`...)
	dst = strconv.AppendInt(dst, int64(r.IntN(100_000)), 10)
	dst = append(dst, `,"items":`...)
	dst = strconv.AppendInt(dst, int64(1+r.IntN(20)), 10)
	dst = append(dst, `,"paid":`...)
	dst = strconv.AppendBool(dst, r.IntN(10) > 0)
	dst = append(dst, `,"at":"`...)
	dst = at.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, `","note":"leave it at the door"}`...)
	return append(dst, '\n')
}
