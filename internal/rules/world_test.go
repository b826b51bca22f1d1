package rules

import (
	"go/ast"
	"strings"
)

// worldly are the files and folders that reach the world by themselves, and why
// they may.
var worldly = map[string]string{
	"kafka/environment.go":       "reads the settings that stand in the environment, before anything runs",
	"kafka/clusterfile.go":       "reads the settings that stand in a file, and the certificates that it names, before anything runs",
	"env":                        "is the way to the world",
	"codec/registry":             "speaks HTTP with a schema registry",
	"codec/waiting.go":           "a registry that does not answer is bounded by a deadline, and a codec is given no environment",
	"main.go":                    "ends the process with the command line's exit code",
	"options.go":                 "names the type of the listener that it is given",
	"store/folder.go":            "tells the system's errors apart",
	"store/race.go":              "compares files, and tells the system's errors apart",
	"store/filesystem_linux.go":  "asks the system for a file system's name",
	"store/upload.go":            "tells the system's errors apart",
	"store/storetest":            "starts processes that race each other",
	"postgres/connect.go":        "connects to the server, and reads its address from the environment",
	"internal/cli":               "is the edge between a person and the library: terminal, signals, exit codes",
	"internal/dev":               "is a command: signals, a file that is named, output",
	"internal/epoch/process.go":  "asks the operating system who this process is",
	"internal/memory/process.go": "looks for the limits of this process",
	"internal/operate":           "answers over HTTP",
	"kafka/embedded":             "listens, and has a folder that is locked",
	"internal/services":          "starts real servers for tests",
	"internal/cutproxy":          "stands between clients and servers, for tests",
}

// programs are folders of programs, which are the world's own.
var programs = []string{"cmd", "examples", "bench", "internal/torture"}

// world are the packages that reach the world, and of packages that mostly
// don't, the functions that do.
var world = map[string]string{
	"os": "", "os/exec": "", "os/signal": "", "os/user": "", "syscall": "", "net": "", "net/http": "", "log": "",
	"math/rand": "", "math/rand/v2": "", "crypto/rand": "", "hash/maphash": "", "path/filepath": "Glob Walk WalkDir Abs EvalSymlinks",
	"time":    "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker",
	"context": "WithTimeout WithTimeoutCause WithDeadline WithDeadlineCause",
	"fmt":     "Print Printf Println Scan Scanf Scanln",
}

func checkWorld(t *tree) (faults []fault) {
	needed := map[string]bool{}
	for _, p := range t.packages {
		if p.under(programs...) {
			continue
		}
		for _, s := range byPath(p.code) {
			found := t.worldIn(s)
			if len(found) == 0 {
				continue
			}
			if e := exempt(s.path); e != "" {
				needed[e] = true
				continue
			}
			faults = append(faults, found...)
		}
	}
	return append(faults, unused(worldly, needed, "world_test.go")...)
}

// exempt is the exception that covers a file.
func exempt(file string) string {
	for e := range worldly {
		if file == e || strings.HasPrefix(file, e+"/") {
			return e
		}
	}
	return ""
}

// worldIn finds where a file reaches the world.
func (t *tree) worldIn(s *source) (faults []fault) {
	reaching := map[string]string{} // by name in this file: the functions
	for _, i := range s.ast.Imports {
		functions, ok := world[imported(i)]
		switch {
		case !ok:
		case functions == "":
			faults = append(faults, t.at(i, "imports %s", imported(i)))
		default:
			reaching[localName(i)] = functions
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if from, name := selector(e); contains(reaching[from], name) {
				faults = append(faults, t.at(n, "uses %s.%s", from, name))
			}
		}
		return true
	})
	return faults
}

// localName is what a file calls an imported package.
func localName(i *ast.ImportSpec) string {
	if i.Name != nil {
		return i.Name.Name
	}
	name := imported(i)
	return name[strings.LastIndexByte(name, '/')+1:]
}
