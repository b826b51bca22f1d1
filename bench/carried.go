package main

import (
	"context"
	"encoding/binary"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/avrofile"
	"github.com/sluicestream/sluice/internal/carry"
	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/migrate"
	"github.com/sluicestream/sluice/internal/state"
	"github.com/sluicestream/sluice/schema"
	"github.com/sluicestream/sluice/store"
)

// accountNow is what became of account: a Boolean more, and two fields that have
// changed places.
type accountNow struct {
	Cents, Orders, Seen int64
	Name, City, Note    string
	VIP                 bool
}

// upgradeAccount is an author's migration.
func upgradeAccount(a account) (accountNow, error) {
	if a.Cents < 0 {
		return accountNow{}, errors.New("a negative amount")
	}
	return accountNow{Cents: a.Cents, Orders: a.Orders, Seen: a.Seen, Name: a.Name, City: a.City, Note: a.Note, VIP: a.Cents > 5_000_000}, nil
}

const (
	carriedJob   = "carried" // the job's name
	carriedState = "accounts"
	allCarried   = 2_000_000
)

func carriedFolder(s setting) string { return filepath.Join(s.Dir, "carried") }

// carriedStore is the store, and what is stored there.
func carriedStore(s setting) (st *store.Folder, segment epoch.Segment, err error) {
	if st, err = store.OpenFolder(env.Real(), carriedFolder(s)); err != nil {
		return nil, segment, err
	}
	data, err := os.ReadFile(carriedFolder(s) + ".json")
	if err != nil {
		return nil, segment, err
	}
	return st, segment, json.Unmarshal(data, &segment)
}

func accountForm[T any]() (state.Form, *schema.Type[T], error) {
	typ, err := schema.Of[T](carriedState)
	if err != nil {
		return state.Form{}, nil, err
	}
	key, err := schema.Parse([]byte(`"string"`))
	return state.Form{Name: carriedState, Key: key, Value: typ.Schema()}, typ, err
}

// carriedWrite writes accounts as one segment.
func carriedWrite(t task) (sample, error) {
	form, typ, err := accountForm[account]()
	if err != nil {
		return nil, err
	}
	st, err := store.OpenFolder(env.Real(), carriedFolder(t.setting))
	if err != nil {
		return nil, err
	}
	var c state.Changes
	for i := range int64(t.scale(allCarried)) {
		a := accountOf(i)
		key := userName(int(i))
		encoded := appendText(nil, key)
		c.Begin(epoch.Slot(xxhash.Sum64(encoded) >> 48))
		c.Buf = append(c.Buf, encoded...)
		c.Value()
		if c.Buf, err = typ.Append(append(c.Buf, 2), &a); err != nil {
			return nil, err
		}
	}
	segment, err := state.Write(context.Background(), st, carriedJob, "accounts.avro", form, []*state.Changes{&c}, 0)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(segment)
	if err != nil {
		return nil, err
	}
	return sample{"bytes": float64(segment.Bytes)}, os.WriteFile(carriedFolder(t.setting)+".json", data, 0o644)
}

// readUnchanged reads what is stored as the type that it was stored as.
func readUnchanged(t task) (sample, error) {
	_, typ, err := accountForm[account]()
	if err != nil {
		return nil, err
	}
	return readInto(t, typ.Decode, func(a *account) int64 { return a.Cents })
}

// readResolved reads what is stored as the new type.
func readResolved(t task) (sample, error) {
	form, _, err := accountForm[account]()
	if err != nil {
		return nil, err
	}
	_, typ, err := accountForm[accountNow]()
	if err != nil {
		return nil, err
	}
	reader, err := typ.Reader(form.Value)
	if err != nil {
		return nil, err
	}
	return readInto(t, reader.Decode, func(a *accountNow) int64 { return a.Cents })
}

// readInto reads all values into one of a type, and adds up their amounts.
func readInto[T any](t task, decode func(src []byte, v *T) ([]byte, error), cents func(v *T) int64) (sample, error) {
	st, segment, err := carriedStore(t.setting)
	if err != nil {
		return nil, err
	}
	form, _, err := accountForm[account]()
	if err != nil {
		return nil, err
	}
	began, n, sum := settledCPU(), 0, int64(0)
	var v T
	for e, err := range state.Read(context.Background(), st, carriedJob, form, []epoch.Segment{segment}, epoch.AllSlots) {
		if err != nil {
			return nil, err
		}
		if _, err := decode(e.Value, &v); err != nil {
			return nil, err
		}
		n++
		sum += cents(&v)
	}
	took := settledCPU() - began
	if n != t.scale(allCarried) {
		return nil, fmt.Errorf("expected %d accounts, found %d", t.scale(allCarried), n)
	}
	return sample{cpuSeconds: took.Seconds(), "cents": float64(sum)}, nil
}

// carriedWay is how the accounts come from what is stored.
func carriedWay() (*carry.Way, error) {
	form, _, err := accountForm[account]()
	if err != nil {
		return nil, err
	}
	formNow, typ, err := accountForm[accountNow]()
	if err != nil {
		return nil, err
	}
	carrier, err := carry.New(carry.Target{Kind: "value", Form: formNow},
		carry.Codec[string, accountNow]{AppendKey: func(dst []byte, key *string) []byte { return appendText(dst, *key) }, Value: typ},
		carry.Spec[string, accountNow]{Chain: carry.First(upgradeAccount)})
	if err != nil {
		return nil, err
	}
	way := carrier.Find(func(string) *carry.Stored { return &carry.Stored{Name: carriedState, Kind: "value", Form: form} })
	if way.Verdict != carry.Migrates {
		return nil, fmt.Errorf("the verdict is %s: %q", way.Verdict, way.Refusals)
	}
	return way, nil
}

// migrateState migrates what is stored by the author's function: first the entries
// alone, which lie in memory, then the state, from the store to the store.
func migrateState(t task) (sample, error) {
	st, segment, err := carriedStore(t.setting)
	if err != nil {
		return nil, err
	}
	way, err := carriedWay()
	if err != nil {
		return nil, err
	}
	convert, made := way.Converter(0), 0
	put := func(r carry.Row) error {
		made += len(r.Value)
		return nil
	}
	entries, err := convertTime(t, func(e *state.Entry) error { return convert(e, put) })
	if err != nil {
		return nil, err
	}
	began := settledCPU()
	written, _, err := migrate.State(context.Background(), migrate.Options{
		Store: st, Job: carriedJob, Way: way, Stored: map[string]epoch.StateEntry{carriedState: {Segments: []epoch.Segment{segment}}},
		Path: "migrated.avro", Workers: 1, Memory: func(rows, bytes int64) int64 { return bytes },
	})
	if err != nil {
		return nil, err
	}
	whole := settledCPU() - began
	return sample{cpuSeconds: entries, "whole": whole.Seconds(), "made": float64(made), "bytes": float64(written.Bytes), "hash": hashNumber(written.SHA256)},
		st.Delete(context.Background(), carriedJob+"/migrated.avro")
}

// convertTime is the CPU that the conversion of all entries takes, in seconds. They
// are read before, a part at a time.
func convertTime(t task, convert func(e *state.Entry) error) (float64, error) {
	const part = 100_000
	st, segment, err := carriedStore(t.setting)
	if err != nil {
		return 0, err
	}
	form, _, err := accountForm[account]()
	if err != nil {
		return 0, err
	}
	var buf []byte
	var entries []state.Entry
	var took time.Duration
	timed := func() error {
		began := settledCPU()
		for i := range entries {
			if err := convert(&entries[i]); err != nil {
				return err
			}
		}
		took += settledCPU() - began
		buf, entries = buf[:0], entries[:0]
		return nil
	}
	buf = make([]byte, 0, part*200)
	for e, err := range state.Read(context.Background(), st, carriedJob, form, []epoch.Segment{segment}, epoch.AllSlots) {
		if err != nil {
			return 0, err
		}
		at := len(buf)
		buf = append(append(buf, e.Key...), e.Value...)
		middle := at + len(e.Key)
		entries = append(entries, state.Entry{Slot: e.Slot, Key: buf[at:middle:middle], Value: buf[middle:]})
		if len(entries) == part {
			if err := timed(); err != nil {
				return 0, err
			}
		}
	}
	err = timed()
	return took.Seconds(), err
}

// hashNumber is the beginning of a hash, for a sample.
func hashNumber(hash string) float64 {
	var n uint64
	fmt.Sscanf(hash[:12], "%x", &n)
	return float64(n)
}

// migrateFloor does the same by hand.
func migrateFloor(t task) (sample, error) {
	_, segment, err := carriedStore(t.setting)
	if err != nil {
		return nil, err
	}
	formNow, _, err := accountForm[accountNow]()
	if err != nil {
		return nil, err
	}
	var value []byte
	made := 0
	entries, err := convertTime(t, func(e *state.Entry) (err error) {
		value, _, err = migrateValue(value[:0], e.Value, upgradeAccount)
		made += len(value)
		return err
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(carriedFolder(t.setting), "by-hand")
	defer os.Remove(path)
	began := settledCPU()
	in, err := os.Open(filepath.Join(carriedFolder(t.setting), carriedJob, segment.Path))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	sum, err := migrateByHand(in, out, formNow, upgradeAccount)
	if err != nil {
		return nil, err
	}
	if err := out.Sync(); err != nil {
		return nil, err
	}
	whole := settledCPU() - began
	return sample{cpuSeconds: entries, "whole": whole.Seconds(), "made": float64(made), "bytes": float64(sum.Bytes), "hash": hashNumber(sum.SHA256)}, nil
}

func migrateByHand(in io.Reader, out io.Writer, form state.Form, f func(account) (accountNow, error)) (avrofile.Summary, error) {
	r, err := avrofile.NewReader(in)
	if err != nil {
		return avrofile.Summary{}, err
	}
	meta := map[string]string{}
	for _, key := range []string{"sluice.format", "sluice.state", "sluice.deletes"} {
		meta[key] = r.Meta(key)
	}
	w := avrofile.New(out, avrofile.Options{Schema: form.Schema().String(), Meta: meta})
	var block, record []byte
	for {
		var n int
		if block, n, err = r.Next(block); err == io.EOF {
			return w.Close()
		} else if err != nil {
			return avrofile.Summary{}, err
		}
		for src := block; n > 0; n-- {
			if record, src, err = migrateRecord(record[:0], src, f); err != nil {
				return avrofile.Summary{}, err
			}
			if err := w.Append(record); err != nil {
				return avrofile.Summary{}, err
			}
		}
	}
}

// migrateRecord migrates a record whose bytes are known to be good.
func migrateRecord(dst, src []byte, f func(account) (accountNow, error)) (record, rest []byte, err error) {
	_, head := binary.Varint(src) // the slot
	length, n := binary.Varint(src[head:])
	head += n + int(length) + 1 // the key, and that there is a value
	return migrateValue(append(dst, src[:head]...), src[head:], f)
}

func migrateValue(dst, src []byte, f func(account) (accountNow, error)) (value, rest []byte, err error) {
	var a account
	a.Orders, src = takeNumber(src)
	a.Cents, src = takeNumber(src)
	a.Seen, src = takeNumber(src)
	a.Name, src = takeText(src)
	a.City, src = takeText(src)
	a.Note, src = takeText(src)
	b, err := f(a)
	if err != nil {
		return nil, nil, err
	}
	dst = binary.AppendVarint(dst, b.Cents)
	dst = binary.AppendVarint(dst, b.Orders)
	dst = binary.AppendVarint(dst, b.Seen)
	dst = appendText(appendText(appendText(dst, b.Name), b.City), b.Note)
	if b.VIP {
		return append(dst, 1), src, nil
	}
	return append(dst, 0), src, nil
}

// withCarried measures with accounts that are written once.
func withCarried(b *bench, measure func() (Result, error)) ([]Result, error) {
	remove := func() {
		os.RemoveAll(carriedFolder(b.setting))
		os.Remove(carriedFolder(b.setting) + ".json")
	}
	remove()
	defer remove()
	if _, err := b.child("carried.write", ""); err != nil {
		return nil, err
	}
	r, err := measure()
	return []Result{r}, err
}

func measureResolve(b *bench) ([]Result, error) {
	return withCarried(b, func() (Result, error) {
		s, floor, err := b.compare("resolve", "resolve.floor", "", cpuSeconds, 5)
		if err != nil {
			return Result{}, err
		}
		if s["cents"] != floor["cents"] {
			return Result{}, errors.New("what is resolved has other amounts")
		}
		entries := float64(b.setting.scale(allCarried)) / 1e6
		return Result{
			Name: "resolve", Value: entries / s[cpuSeconds], Unit: "M/CPU-s",
			What: fmt.Sprintf("%.1fM stored entries of about 100 bytes read into a type with a field more and two in other places; floor: read unchanged", entries),
		}.against(entries / floor[cpuSeconds]).atLeast(0.7), nil
	})
}

func measureMigrate(b *bench) ([]Result, error) {
	return withCarried(b, func() (Result, error) {
		s, floor, err := b.compare("migrate", "migrate.floor", "", cpuSeconds, 5)
		if err != nil {
			return Result{}, err
		}
		if s["hash"] != floor["hash"] || s["bytes"] != floor["bytes"] || s["made"] != floor["made"] {
			return Result{}, errors.New("what is migrated is not what is migrated by hand")
		}
		entries := float64(b.setting.scale(allCarried)) / 1e6
		r := Result{
			Name: "migrate", Value: entries / s[cpuSeconds], Unit: "M/CPU-s",
			What: fmt.Sprintf("%.1fM stored entries of about 100 bytes decoded, migrated by the author's function and encoded; floor: the same by hand, which gives the same bytes", entries),
			Why:  "what an author's type looks like is known only when the job starts, so that its fields are read and written from a list",
		}.against(entries / floor[cpuSeconds]).atLeast(0.8)
		r.note("with reading and writing the state, its check sums included, %.2f M/CPU-s, by hand %.2f, where nothing is checked; %.0f MB are written", entries/s["whole"], entries/floor["whole"], s["bytes"]/1e6)
		return r, nil
	})
}
