package epoch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a name that a person gives, in bytes, so that a file name
// that is made of two of them and three numbers stays under 255.
const maxName = 80

// CheckName says whether a job, branch, task, source, state or sink may have
// this name: up to 80 bytes of printable characters without slashes, with
// neither a dot nor a space at its begin, nor a space at its end.
func CheckName(what, name string) error {
	fault := ""
	switch {
	case name == "":
		fault = "is empty"
	case len(name) > maxName:
		fault = fmt.Sprintf("has %d bytes, the limit is %d", len(name), maxName)
	case !utf8.ValidString(name):
		fault = "is not UTF-8"
	case strings.ContainsAny(name, `/\`):
		fault = "holds a slash"
	case name[0] == '.':
		fault = "begins with a dot"
	case strings.TrimSpace(name) != name:
		fault = "begins or ends with a space"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		fault = "holds a character that can't be printed"
	}
	if fault == "" {
		return nil
	}
	return fmt.Errorf("%s name %.*q %s; give it another one", what, maxName, name, fault)
}

// checkLogName says whether there may be such a log.
func checkLogName(branch, task string) error {
	if err := CheckName("branch", branch); err != nil {
		return err
	}
	return CheckName("task", task)
}

// The names of objects, as paths below the job's folder.

// JobPath is the name of the job's own record.
const JobPath = "job.json"

// VersionPath names a version's description by its hash.
func VersionPath(hash string) string { return "versions/" + hash + ".json" }

// LayoutPath names a layout.
func LayoutPath(k int) string { return fmt.Sprintf("layouts/%d.json", k) }

// BranchPath names a branch's own record.
func BranchPath(branch string) string { return "branches/" + branch + "/branch.json" }

// LogPath is the folder of a task's log, with a slash at its end.
func LogPath(branch, task string) string { return "branches/" + branch + "/" + task + "/" }

// ManifestPath names an epoch's manifest.
func ManifestPath(branch, task string, e Epoch) string {
	return LogPath(branch, task) + digits(e) + ".json"
}

// FloorPath names the record that clean-up has freed a log's epochs under e.
func FloorPath(branch, task string, e Epoch) string {
	return LogPath(branch, task) + "floor/" + digits(e) + ".json"
}

// HeartbeatPath names the heartbeat of a task's owner.
func HeartbeatPath(branch, task string) string { return LogPath(branch, task) + "heartbeat.json" }

// DataPath names a data object written for epoch e by an owner, as its seq-th.
func DataPath(branch, task string, e Epoch, owner string, seq uint64, name string) string {
	return fmt.Sprintf("%sdata/%s-%s-%d-%s.avro", LogPath(branch, task), digits(e), owner, seq, name)
}

// FunctionsPath names the record of the functions' names that a build of a
// version has, by the beginning of its executable's hash.
func FunctionsPath(version, executable string) string {
	return "functions/" + version + "-" + executable[:min(len(executable), executableDigits)] + ".json"
}

// executableDigits tell builds of one version apart.
const executableDigits = 16

// LivePath names a live record.
func LivePath(n Generation) string { return fmt.Sprintf("live/%d.json", n) }

// ControlPath names a request.
func ControlPath(n uint64) string { return fmt.Sprintf("control/%d.json", n) }

// PinPath names a pin.
func PinPath(id string) string { return "pins/" + id + ".json" }

// SavepointPath names a savepoint; random keeps savepoints of one name apart.
func SavepointPath(name, random string) string { return "savepoints/" + name + "-" + random + ".json" }

// DrainedPath names the record that the outboxes of a sink that generation n
// dropped have been delivered.
func DrainedPath(n Generation, task, sink string) string {
	return fmt.Sprintf("drained/%d-%s-%s.json", n, task, sink)
}

// digits writes an epoch with 20 digits, so that names sort as epochs do.
// [AllEpochs] is 20 nines, above every number.
func digits(e Epoch) string {
	if e == AllEpochs {
		return allDigits
	}
	return fmt.Sprintf("%020d", uint64(e))
}

const allDigits = "99999999999999999999"

// ObjectKind says what an object's name says that it is.
type ObjectKind string

// The kinds of objects.
const (
	JobObject       ObjectKind = "job"
	VersionObject   ObjectKind = "version"
	FunctionsObject ObjectKind = "functions"
	LayoutObject    ObjectKind = "layout"
	BranchObject    ObjectKind = "branch"
	ManifestObject  ObjectKind = "manifest"
	FloorObject     ObjectKind = "floor"
	HeartbeatObject ObjectKind = "heartbeat"
	DataObject      ObjectKind = "data"
	LiveObject      ObjectKind = "live"
	ControlObject   ObjectKind = "control"
	PinObject       ObjectKind = "pin"
	SavepointObject ObjectKind = "savepoint"
	DrainedObject   ObjectKind = "drained"
)

// Name is an object's name, read. Fields that its kind doesn't have are zero.
type Name struct {
	Kind   ObjectKind
	Branch string
	Task   string
	Epoch  Epoch
	// Owner and Seq are the writer of a data object and its counter.
	Owner string
	Seq   uint64
	// Number is the number of a live record, layout, request, or of the
	// generation that dropped a sink.
	Number uint64
	// Label is the hash of a version, the id of a pin, the random part of a
	// savepoint, the beginning of the hash of a build's executable.
	Label string
	// Given is the name that a data object, a savepoint or a sink was given, the
	// version of a build's functions.
	Given string
}

// ParsePath reads the name of an object below the job's folder.
func ParsePath(path string) (Name, bool) {
	folder, rest, _ := strings.Cut(path, "/")
	stem, isJSON := strings.CutSuffix(rest, ".json")
	switch {
	case path == JobPath:
		return Name{Kind: JobObject}, true
	case folder == "branches":
		return parseBranch(rest)
	case !isJSON || stem == "" || strings.Contains(stem, "/"):
		return Name{}, false
	}
	switch folder {
	case "versions":
		return Name{Kind: VersionObject, Label: stem}, true
	case "pins":
		return Name{Kind: PinObject, Label: stem}, true
	case "layouts":
		return parseNumbered(LayoutObject, stem)
	case "live":
		return parseNumbered(LiveObject, stem)
	case "control":
		return parseNumbered(ControlObject, stem)
	case "savepoints":
		return parseLabelled(SavepointObject, stem)
	case "functions":
		n, ok := parseLabelled(FunctionsObject, stem)
		return n, ok && n.Label != "" && len(n.Label) <= executableDigits
	case "drained":
		return parseDrained(stem)
	}
	return Name{}, false
}

// parseBranch reads what lies below branches/.
func parseBranch(rest string) (Name, bool) {
	parts := strings.Split(rest, "/")
	if parts[0] == "" {
		return Name{}, false
	}
	n := Name{Branch: parts[0]}
	switch {
	case len(parts) == 2 && parts[1] == "branch.json":
		n.Kind = BranchObject
		return n, true
	case len(parts) < 3 || parts[1] == "":
		return Name{}, false
	}
	n.Task = parts[1]
	switch {
	case len(parts) == 3 && parts[2] == "heartbeat.json":
		n.Kind = HeartbeatObject
		return n, true
	case len(parts) == 3:
		n.Kind = ManifestObject
		return n, n.setEpoch(parts[2]) && n.Epoch != AllEpochs
	case len(parts) == 4 && parts[2] == "floor":
		n.Kind = FloorObject
		return n, n.setEpoch(parts[3])
	case len(parts) == 4 && parts[2] == "data":
		return parseData(n, parts[3])
	}
	return Name{}, false
}

func (n *Name) setEpoch(file string) bool {
	stem, ok := strings.CutSuffix(file, ".json")
	if !ok {
		return false
	}
	n.Epoch, ok = parseEpoch(stem)
	return ok
}

func parseData(n Name, file string) (Name, bool) {
	stem, ok := strings.CutSuffix(file, ".avro")
	parts := strings.SplitN(stem, "-", 4)
	if !ok || len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return Name{}, false
	}
	n.Kind, n.Owner, n.Given = DataObject, parts[1], parts[3]
	if n.Epoch, ok = parseEpoch(parts[0]); !ok || n.Epoch == AllEpochs {
		return Name{}, false
	}
	n.Seq, ok = parseNumber(parts[2])
	return n, ok
}

// parseLabelled reads a name that was given, with a label behind it.
func parseLabelled(kind ObjectKind, stem string) (Name, bool) {
	cut := strings.LastIndexByte(stem, '-')
	if cut < 1 {
		return Name{}, false
	}
	return Name{Kind: kind, Given: stem[:cut], Label: stem[cut+1:]}, true
}

func parseDrained(stem string) (Name, bool) {
	parts := strings.SplitN(stem, "-", 3)
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Name{}, false
	}
	n, ok := parseNumbered(DrainedObject, parts[0])
	n.Task, n.Given = parts[1], parts[2]
	return n, ok
}

func parseNumbered(kind ObjectKind, stem string) (Name, bool) {
	number, ok := parseNumber(stem)
	return Name{Kind: kind, Number: number}, ok
}

// parseNumber reads a number in the one way in which it is written.
func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == s
}

func parseEpoch(s string) (Epoch, bool) {
	if s == allDigits {
		return AllEpochs, true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	e := Epoch(n)
	return e, err == nil && e != AllEpochs && digits(e) == s
}
