package torture

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/sluicestream/sluice/internal/torture/sources"
)

// hostile is a folder of the job visits that has run to its end, for somebody to
// spoil who knows the formats: sums and hashes are right.
type hostile struct {
	folder, jobs, sluice string
	epochs               int // manifests of the log
}

// sluiceBuilt is for the command sluice.
var sluiceBuilt sync.Once

func newHostile(t *testing.T) *hostile {
	t.Helper()
	j := newVisits(t)
	h := &hostile{folder: j.folder, jobs: j.bin, sluice: filepath.Join(binaries.folder, "sluice")}
	sluiceBuilt.Do(func() {
		sources.Read(t)
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", h.sluice, "../../cmd/sluice").CombinedOutput(); err != nil {
			t.Fatalf("building sluice: %v\n%s", err, out)
		}
	})
	h.epochs = len(j.journal(t).manifests)
	return h
}

func (h *hostile) copy(t *testing.T) *hostile {
	t.Helper()
	c := *h
	c.folder = filepath.Join(t.TempDir(), "job") // with a folder around it that is to stay empty
	if err := os.CopyFS(c.folder, os.DirFS(h.folder)); err != nil {
		t.Fatal(err)
	}
	return &c
}

// object is the path of an object of the job.
func (h *hostile) object(name string) string {
	return filepath.Join(h.folder, "store", "visits", filepath.FromSlash(name))
}

func (h *hostile) manifest(epoch int) string {
	return fmt.Sprintf("branches/main/0.0/%020d.json", epoch)
}

func (h *hostile) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(h.object(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (h *hostile) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.object(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Remove(h.object(name))
	if err := os.WriteFile(h.object(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const sumMark = `,"sum":"`

// sealed is an object with a sum that is right.
func sealed(body string) string {
	return body + sumMark + hashOf(body) + "\"}\n"
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// edit replaces what fits a pattern in an object, under a sum that is right.
func (h *hostile) edit(t *testing.T, name, pattern, with string) {
	t.Helper()
	body, _, _ := strings.Cut(h.read(t, name), sumMark)
	edited := regexp.MustCompile(pattern).ReplaceAllLiteralString(body, with)
	if edited == body {
		t.Fatalf("%s holds nothing that fits %s:\n%s", name, pattern, body)
	}
	h.write(t, name, sealed(edited))
}

// editAll is edit for each manifest that has what fits; each names the hash of the
// one before.
func (h *hostile) editAll(t *testing.T, pattern, with string) {
	t.Helper()
	fits, named := regexp.MustCompile(pattern), regexp.MustCompile(`"parent":"[0-9a-f]*"`)
	parent, edits := "", 0
	for e := range h.epochs {
		body, _, _ := strings.Cut(h.read(t, h.manifest(e)), sumMark)
		edits += len(fits.FindAllString(body, -1))
		body = fits.ReplaceAllLiteralString(body, with)
		body = named.ReplaceAllLiteralString(body, `"parent":"`+parent+`"`)
		h.write(t, h.manifest(e), sealed(body))
		parent = hashOf(h.read(t, h.manifest(e)))
	}
	if edits == 0 {
		t.Fatalf("no manifest holds what fits %s", pattern)
	}
}

// segment is the path of the segment of the state users.
func (h *hostile) segment(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`branches/main/0\.0/data/[0-9a-f-]*-users\.avro`).FindString(h.read(t, h.manifest(h.epochs-1)))
	if found == "" {
		t.Fatal("the head names no segment of users")
	}
	return found
}

// plant puts a file in the segment's place, and in the manifests what it is.
func (h *hostile) plant(t *testing.T, file string) {
	t.Helper()
	name := h.segment(t)
	h.write(t, name, file)
	h.editAll(t, regexp.QuoteMeta(name)+`","slots":\{"first":\d+,"last":\d+\},"rows":\d+,"bytes":\d+,"memory":\d+,"sha256":"[0-9a-f]*"`,
		fmt.Sprintf(`%s","slots":{"first":0,"last":65535},"rows":1,"bytes":%d,"memory":1,"sha256":"%s"`, name, len(file), hashOf(file)))
}

// avro is a container file with a header of the state's and any content.
func (h *hostile) avro(t *testing.T, codec, schema string, blocks ...string) string {
	t.Helper()
	if schema == "" {
		data, err := os.ReadFile(h.object(h.segment(t)))
		if err != nil {
			t.Fatal(err)
		}
		schema = avroMeta(t, data, "avro.schema")
	}
	sync := strings.Repeat("S", 16)
	var b strings.Builder
	b.WriteString("Obj\x01" + zigzag(4))
	for _, pair := range [][2]string{{"avro.codec", codec}, {"avro.schema", schema}, {"sluice.format", "1"}, {"sluice.state", "users"}} {
		b.WriteString(zigzag(int64(len(pair[0]))) + pair[0] + zigzag(int64(len(pair[1]))) + pair[1])
	}
	b.WriteString(zigzag(0) + sync)
	for _, block := range blocks {
		b.WriteString(block + sync)
	}
	return b.String()
}

// avroMeta finds a value in a container file's header.
func avroMeta(t *testing.T, data []byte, key string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(data), key)
	n, size := binary.Varint([]byte(rest))
	if !ok || size <= 0 || n < 0 || n > int64(len(rest)-size) {
		t.Fatalf("no %s in the segment", key)
	}
	return rest[size : size+int(n)]
}

func zigzag(n int64) string { return string(binary.AppendVarint(nil, n)) }

func counted(records int64, data string) string {
	return zigzag(records) + zigzag(int64(len(data))) + data
}

// snappy is a block of zeros, or one that claims to have that many.
func snappy(size int, claim uint64) string {
	zeros := make([]byte, size)
	packed := s2.EncodeSnappy(nil, zeros)
	if claim > 0 {
		_, n := binary.Uvarint(packed)
		packed = append(binary.AppendUvarint(nil, claim), packed[n:]...)
	}
	return string(binary.BigEndian.AppendUint32(packed, crc32.ChecksumIEEE(zeros)))
}

// commands are what somebody would run on the store. The job itself comes last:
// it may change what the others look at.
var commands = []string{"status", "log", "show", "fsck", "state list", "state read users user-1", "gc --dry-run", "gc", "run"}

// most is the most memory that a command may take, in bytes: its own, of which
// the tests' at its start is a part, and some objects of the largest size that is
// read.
const most = 400 << 20

var errorLines = regexp.MustCompile(`(?m)^error: .*$`)

// attack runs all commands on the store. Each ends by itself, in little memory,
// with an exit code that is documented and, if it fails, one line; those that
// must fail name the object. Nothing outside of the job's folder is touched.
func (h *hostile) attack(t *testing.T, object string, fails ...string) {
	t.Helper()
	outside := filepath.Dir(h.folder)
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		binary := h.sluice
		args := strings.Fields(command)
		args = append(args, "--store", "store")
		if command == "run" {
			binary = filepath.Join(h.jobs, "broken")
			args = append(args, "--listen", "", "--grace", "1s", "--takeover")
		}
		r := runJob(t, h.folder, binary, args...)
		if strings.Contains(r.stderr, "goroutine ") || !slices.Contains([]int{0, 1, 10, 11, 13, 14, 15, 16, 17}, r.code) {
			t.Errorf("%s: exit code %d\n%s", command, r.code, shown(r.stderr))
		}
		if r.peak > most && !race {
			t.Errorf("%s: %d MB of memory, expected at most %d", command, r.peak>>20, int64(most)>>20)
		}
		if errors := errorLines.FindAllString(r.stderr, -1); r.code != 0 && command != "fsck" && (len(errors) != 1 || len(errors[0]) > 4000) {
			t.Errorf("%s: expected one short line with the error, found:\n%s", command, shown(r.stderr))
		}
		if bad := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' }); bad >= 0 {
			t.Errorf("%s: what is printed holds %q", command, (r.stdout + r.stderr)[bad])
		}
		if must := slices.Contains(fails, command); must && (r.code == 0 || !strings.Contains(r.stdout+r.stderr, object)) {
			t.Errorf("%s: exit code %d, and %s is to be named:\n%s", command, r.code, object, shown(r.stdout+r.stderr))
		}
	}
	around, err := os.ReadDir(outside)
	text, _ := os.ReadFile(secret)
	if err != nil || len(around) != 2 || string(text) != "secret" {
		t.Errorf("outside of the job's folder there is %v now, with %q (%v)", around, text, err)
	}
}

// TestHostileStore gives the commands and the job stores that somebody wrote who
// means ill.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	first := newHostile(t)
	cases := hostileRecords(first)
	maps.Copy(cases, hostileManifests(first))
	maps.Copy(cases, hostileSegments())
	names := slices.Sorted(maps.Keys(cases))
	for i, name := range names {
		if os.Getenv("SLUICE_TORTURE") == "" && i%8 != 0 {
			continue // all of them take half a minute
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cases[name](t, first.copy(t))
		})
	}
}

type hostileCase = func(t *testing.T, h *hostile)

// hostileRecords spoil the objects around the log.
func hostileRecords(first *hostile) map[string]hostileCase {
	deep := `{"format":1,"x":` + strings.Repeat(`[`, 1_000_000)
	cases := map[string]hostileCase{}
	add := func(name, object string, text func(t *testing.T, h *hostile) string, fails ...string) {
		cases[name+", "+object] = func(t *testing.T, h *hostile) {
			h.write(t, object, text(t, h))
			h.attack(t, object, fails...)
		}
	}
	head := first.manifest(first.epochs - 1)
	readers := map[string][]string{
		"job.json":                         {"status", "log", "show", "fsck", "gc", "run"},
		"live/0.json":                      {"status", "fsck", "run"},
		"layouts/0.json":                   {"fsck", "run"},
		"branches/main/branch.json":        {"fsck"},
		"branches/main/0.0/heartbeat.json": {"status"},
		head:                               {"status", "log", "show", "fsck", "gc", "run"},
		"control/1.json":                   {"fsck"},
		"pins/main-1.json":                 {"fsck", "gc"},
		"savepoints/a-1.json":              {"fsck", "gc"},
	}
	for object, fails := range readers {
		add("deep", object, func(*testing.T, *hostile) string { return sealed(deep) }, fails...)
		add("huge", object, func(*testing.T, *hostile) string { return strings.Repeat("\x00", 17<<20) }, fails...)
		add("no text", object, func(*testing.T, *hostile) string {
			return sealed("{\"format\":1,\"job_id\":\"\x1b[2J\\u001b]0;\\u0007\"")
		}, fails...)
		add("format 2^62", object, func(*testing.T, *hostile) string { return sealed(`{"format":4611686018427387904`) }, fails...)
		add("no number", object, func(*testing.T, *hostile) string { return sealed(`{"format":-9e999`) }, fails...)
	}
	edit := func(name, object, pattern, with string, fails ...string) {
		cases[name] = func(t *testing.T, h *hostile) {
			h.edit(t, object, pattern, with)
			h.attack(t, object, fails...)
		}
	}
	edit("a live branch that leaves the folder", "live/0.json", `"branch":"main"`, `"branch":"../../../../secret"`, "run")
	edit("a live branch with an escape", "live/0.json", `"branch":"main"`, `"branch":"\u001b[2J"`, "run")
	edit("a layout below 0", "live/0.json", `"layout":0`, `"layout":-1`)
	edit("another layout than there is", "live/0.json", `"layout":0`, `"layout":4611686018427387904`)
	edit("slots the wrong way round", "layouts/0.json", `"first":0,"last":65535`, `"first":65535,"last":0`)
	edit("slots beyond", "layouts/0.json", `"last":65535`, `"last":4611686018427387904`, "run")
	edit("a task that leaves the folder", "layouts/0.json", `"name":"0.0"`, `"name":"../../../secret"`)
	edit("a heartbeat from the far future", "branches/main/0.0/heartbeat.json", `"epoch":\d+`, `"epoch":18446744073709551615`)
	edit("a lease of 2^62", "branches/main/0.0/heartbeat.json", `"lease":\d+`, `"lease":4611686018427387904`)
	edit("a lease below 0", "branches/main/0.0/heartbeat.json", `"lease":\d+`, `"lease":-4611686018427387904`)
	edit("a role with an escape", "branches/main/0.0/heartbeat.json", `"role":"[a-z]*"`, `"role":"\u001b[2J\nok","by":"x"`)
	edit("a host with an escape", "branches/main/0.0/heartbeat.json", `"host":"[^"]*"`, `"host":"\u001b[2J\n"`)
	edit("another job's name", "job.json", `"job":"visits"`, `"job":"../../secret"`)
	edit("an id that leaves the folder", "job.json", `"job_id":"[0-9a-f]*"`, `"job_id":"../../secret"`)
	id := func(t *testing.T, h *hostile) string {
		return regexp.MustCompile(`"job_id":"[0-9a-f]*"`).FindString(h.read(t, "job.json"))
	}
	add("a branch that leaves the folder", "pins/main-1.json", func(t *testing.T, h *hostile) string {
		return sealed(`{"format":1,` + id(t, h) + `,"branch":"../../..","tasks":{"../secret":18446744073709551615},"time":0`)
	})
	add("a task that leaves the folder", "savepoints/a-1.json", func(t *testing.T, h *hostile) string {
		return sealed(`{"format":1,` + id(t, h) + `,"name":"a","branch":"main","tasks":{"../../../..":9223372036854775807},"time":-9223372036854775808`)
	})
	add("what nobody can ask for", "control/1.json", func(t *testing.T, h *hostile) string {
		return sealed(`{"format":1,` + id(t, h) + `,"n":1,"kind":"\u001b[2J","by":"\n","time":0`)
	})
	cases["names of all kinds"] = func(t *testing.T, h *hostile) {
		for _, name := range []string{
			"branches/a\x1b[2J/branch.json", "branches/a\nb/0.0/00000000000000000000.json", "branches/\xff/branch.json", "branches/main/0.0/data/..avro",
			"branches/main/0.0/data/99999999999999999999-0a-18446744073709551615-x.avro", "branches/main/0.0/99999999999999999999.json",
			"control/18446744073709551615.json", "live/18446744073709551615.json", "layouts/-1.json", "pins/.json", "savepoints/-.json", "\x1b[2J", "versions/..json",
		} {
			h.write(t, name, "{}")
		}
		h.attack(t, "")
	}
	cases["a floor above all"] = func(t *testing.T, h *hostile) {
		object := "branches/main/0.0/floor/99999999999999999999.json"
		h.write(t, object, "")
		h.attack(t, "main", "status", "run")
	}
	cases["a floor that is none"] = func(t *testing.T, h *hostile) {
		object := "branches/main/0.0/floor/1\x1b[2J.json"
		h.write(t, object, "")
		h.attack(t, `1\x1b[2J`, "status", "run")
	}
	return cases
}

// hostileManifests spoil the manifests, those behind them named anew.
func hostileManifests(first *hostile) map[string]hostileCase {
	cases := map[string]hostileCase{}
	edit := func(name, pattern, with, object string, fails ...string) {
		cases["manifest: "+name] = func(t *testing.T, h *hostile) {
			h.editAll(t, pattern, with)
			h.attack(t, object, fails...)
		}
	}
	path := `"path":"branches/main/0\.0/data/[0-9a-f-]*-users\.avro"`
	reads := []string{"fsck", "state read users user-1", "run"}
	edit("a segment outside", path, `"path":"../../../secret"`, "../secret", reads...)
	edit("a segment anywhere", path, `"path":"/etc/passwd"`, "/etc/passwd", reads...)
	edit("a segment that is a manifest", path, `"path":"`+first.manifest(0)+`"`, first.manifest(0), reads...)
	edit("a segment with an escape", path, `"path":"branches/main/0.0/data/\u001b[2J"`, `data/\x1b[2J`, reads...)
	edit("2^62 bytes", `"bytes":\d+,"memory"`, `"bytes":4611686018427387904,"memory"`, "users.avro", reads...)
	edit("bytes below 0", `"bytes":\d+,"memory"`, `"bytes":-1,"memory"`, "users.avro", reads...)
	edit("2^62 rows", `"rows":7,`, `"rows":4611686018427387904,`, "users", "fsck", "run")
	edit("rows below 0", `"rows":7,`, `"rows":-7,`, "users", "fsck", "run")
	edit("2^62 bytes in memory", `"memory":\d+`, `"memory":4611686018427387904`, "", "run")
	edit("memory below 0", `"memory":\d+`, `"memory":-4611686018427387904`, "")
	edit("an offset of 2^62", `"next":\d+`, `"next":4611686018427387904`, "visits.jsonl", "run")
	edit("an offset below 0", `"next":\d+`, `"next":-1`, "visits.jsonl", "run")
	edit("a partition outside", `"visits\.jsonl"`, `"../../secret"`, "../../secret", "run")
	edit("an identity that is none", `"identity":"[^"]*"`, `"identity":"9223372036854775807:x"`, "visits.jsonl", "run")
	edit("confirmed 2^64 - 1", `"confirmed":\d+`, `"confirmed":18446744073709551615`, "")
	edit("a schema that is none", `"value":"(\\"|[^"])*"`, `"value":"{"`, "users", reads...)
	edit("a schema as deep as can be", `"value":"(\\"|[^"])*"`, `"value":"`+strings.Repeat(`{\"type\":`, 100_000)+`"`, "users", reads...)
	edit("a schema that doubles", `"value":"(\\"|[^"])*"`, `"value":"`+strings.ReplaceAll(doubling(60), `"`, `\"`)+`"`, "users", reads...)
	edit("a schema within itself", `"value":"(\\"|[^"])*"`, `"value":"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"f\",\"type\":\"r\"}]}"`, "users", reads...)
	edit("a schema of 2^62 bytes", `"users":{"key":"(\\"|[^"])*","value":"(\\"|[^"])*"`,
		`"users":{"key":"\"string\"","value":"{\"type\":\"fixed\",\"name\":\"f\",\"size\":4611686018427387904}"`, "users", reads...)
	return cases
}

// doubling is a schema of n records of which each holds the one before twice.
func doubling(n int) string {
	s := `{"type":"record","name":"r0","fields":[{"name":"a","type":"int"}]}`
	for i := 1; i < n; i++ {
		s = fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"a","type":%s},{"name":"b","type":"r%d"}]}`, i, s, i-1)
	}
	return s
}

// hostileSegments put files in a segment's place that manifests vouch for.
func hostileSegments() map[string]hostileCase {
	cases := map[string]hostileCase{}
	for name, file := range map[string]func(t *testing.T, h *hostile) string{
		"empty":               func(*testing.T, *hostile) string { return "" },
		"something else":      func(*testing.T, *hostile) string { return "PK\x03\x04" + strings.Repeat("\x00", 100) },
		"a header of 2^62":    func(*testing.T, *hostile) string { return "Obj\x01" + zigzag(2) + zigzag(1<<62) },
		"2^62 header entries": func(*testing.T, *hostile) string { return "Obj\x01" + zigzag(1<<62) },
		"a header of 15 MB": func(*testing.T, *hostile) string {
			return "Obj\x01" + zigzag(2) + zigzag(15<<20) + strings.Repeat("k", 15<<20)
		},
		"2^62 records":    func(t *testing.T, h *hostile) string { return h.avro(t, "null", "", zigzag(1<<62)) },
		"a block of 2^62": func(t *testing.T, h *hostile) string { return h.avro(t, "null", "", zigzag(1)+zigzag(1<<62)) },
		"a block below 0": func(t *testing.T, h *hostile) string { return h.avro(t, "null", "", zigzag(1)+zigzag(-1<<62)) },
		"a key of 2^62":   func(t *testing.T, h *hostile) string { return h.avro(t, "null", "", counted(1, "\x00"+zigzag(1<<62))) },
		"a key below 0":   func(t *testing.T, h *hostile) string { return h.avro(t, "null", "", counted(1, "\x00"+zigzag(-1<<62))) },
		"a bomb":          func(t *testing.T, h *hostile) string { return h.avro(t, "snappy", "", counted(1, snappy(60<<20, 0))) },
		"many bombs": func(t *testing.T, h *hostile) string {
			block := counted(1, snappy(60<<20, 0))
			return h.avro(t, "snappy", "", block, block, block, block)
		},
		"a bomb that lies":    func(t *testing.T, h *hostile) string { return h.avro(t, "snappy", "", counted(1, snappy(1000, 1<<40))) },
		"another codec":       func(t *testing.T, h *hostile) string { return h.avro(t, "zstandard", "", counted(1, "x")) },
		"deflate":             func(t *testing.T, h *hostile) string { return h.avro(t, "deflate", "", counted(1, "x")) },
		"a schema as deep":    func(t *testing.T, h *hostile) string { return h.avro(t, "null", strings.Repeat(`{"type":`, 100_000)) },
		"a schema that grows": func(t *testing.T, h *hostile) string { return h.avro(t, "null", doubling(60)) },
	} {
		cases["segment: "+name] = func(t *testing.T, h *hostile) {
			h.plant(t, file(t, h))
			h.attack(t, "users", "fsck", "state read users user-1", "run")
		}
	}
	return cases
}
