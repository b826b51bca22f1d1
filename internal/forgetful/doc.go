// Package forgetful is a file system that forgets what was not synced when its
// power goes, for tests: bytes that no Sync covered, and names that no SyncDir
// of their folder did.
package forgetful
