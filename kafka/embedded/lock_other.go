//go:build !unix

package embedded

import "os"

// lockFile does nothing where there are no such locks: a second broker on the
// folder goes unnoticed there.
func lockFile(*os.File) error { return nil }
