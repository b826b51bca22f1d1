// Package fsck holds a job's folder in a checkpoint store against itself: every
// object against its name and its sum, manifests against those before them, and
// every segment and outbox against the manifests that refer to it. It reads the
// objects by itself, so that what the job's own code would overlook is found
// too; it changes nothing, and may run beside the job and its clean-up.
package fsck
