package epoch

import (
	"context"
	"errors"
	"maps"

	"github.com/sluicestream/sluice/store"
)

// putFunctions keeps the names of a build's functions, where those of its
// version's first build, which stand in the version's description, are others.
func (j *Job) putFunctions(ctx context.Context, first, mine Version, build Build) error {
	if maps.Equal(first.Functions, mine.Functions) || build.Executable == "" {
		return nil
	}
	names := Functions{Format: Format, JobID: j.file.JobID, Version: build.Version, Executable: build.Executable, Functions: mine.Functions}
	return j.makeRecord(ctx, FunctionsPath(build.Version, build.Executable), names.encode)
}

// Functions are the names that a build gave the job's functions, by the part that
// calls them. The error matches [store.ErrNotFound] if the build's version is not
// there.
func (j *Job) Functions(ctx context.Context, build Build) (map[string]string, error) {
	version, err := j.Version(ctx, build.Version)
	if err != nil || build.Executable == "" {
		return version.Functions, err
	}
	path := FunctionsPath(build.Version, build.Executable)
	names, _, err := read[Functions](ctx, j, At{}, path)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return version.Functions, nil
	case err != nil:
		return nil, err
	case names.JobID != j.file.JobID || FunctionsPath(names.Version, names.Executable) != path:
		return nil, j.damaged(At{}, path, "the functions of the build in its name", "those of another, version "+names.Version)
	case names.Executable != build.Executable:
		return version.Functions, nil // two builds whose hashes begin alike
	}
	return names.Functions, nil
}
