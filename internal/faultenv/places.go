package faultenv

import (
	"path/filepath"
	"strings"

	"github.com/sluicestream/sluice/internal/epoch"
)

// Places are the folders by which files are told apart. A path is looked for as
// it is written: all are relative, or all are absolute.
type Places struct {
	// Store is the folder of the checkpoint store.
	Store string
	// Sinks are folders that the file connector delivers to.
	Sinks []string
	// Inputs is the folder of what the file connector reads.
	Inputs string
}

// kind is the kind of a file or folder.
func (p Places) kind(path string) string {
	if rest, ok := below(p.Store, path); ok {
		return storeKind(rest)
	}
	if _, ok := below(p.Inputs, path); ok {
		return "input"
	}
	for _, sink := range p.Sinks {
		if rest, ok := below(sink, path); ok {
			return "sink " + sinkKind(rest)
		}
	}
	return "other"
}

// below cuts a folder off the path of what is in it; the rest of the folder
// itself is empty.
func below(folder, path string) (rest string, ok bool) {
	if folder == "" {
		return "", false
	}
	rest, err := filepath.Rel(folder, path)
	if err != nil || rest == ".." || strings.HasPrefix(rest, "../") {
		return "", false
	}
	if rest == "." {
		return "", true
	}
	return rest, true
}

// storeKind is the kind of what lies in a checkpoint store.
func storeKind(path string) string {
	if path == "" {
		return "store"
	}
	job, object, deeper := strings.Cut(path, "/")
	switch {
	case strings.HasPrefix(job, ".") && deeper:
		return "scratch"
	case strings.HasPrefix(job, "."):
		return "scratch folder"
	case !deeper:
		return "job folder"
	}
	name, ok := epoch.ParsePath(object)
	switch {
	case !ok:
		return folderKind(strings.Split(object, "/"))
	case name.Kind == epoch.DataObject && strings.HasPrefix(name.Given, "outbox."):
		return "outbox"
	case name.Kind == epoch.DataObject:
		return "segment"
	}
	return string(name.Kind)
}

// folderKind is the kind of a folder of a job. Those of a branch and a task have
// names that people give.
func folderKind(parts []string) string {
	switch {
	case len(parts) == 2 && parts[0] == "branches":
		return "branch folder"
	case len(parts) == 3 && parts[0] == "branches":
		return "log folder"
	}
	return parts[len(parts)-1] + " folder"
}

// sinkKind is the kind of what lies in a folder that is delivered to.
func sinkKind(path string) string {
	const hidden = ".sluice"
	file := strings.TrimPrefix(path, hidden+"/")
	switch {
	case path == "":
		return "folder"
	case path == hidden:
		return "record folder"
	case file == path:
		return "rows"
	case file == "record.json":
		return "record"
	case strings.HasPrefix(file, "tmp-"):
		return "scratch"
	}
	return "note"
}
