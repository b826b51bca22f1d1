package store

import (
	"cmp"
	"fmt"
	"strings"
)

// unknownFS is the name of a file system that nothing tells.
const unknownFS = "unknown"

// mounted is what a mount table says of the file system that a store lies on.
type mounted struct {
	kind    string // as mount has it: ext4, fuse.s3fs
	source  string // what is mounted: a device, or a program's name
	options []string
}

func (m mounted) String() string { return cmp.Or(m.kind, unknownFS) }

// trait is what is known of a kind of file system.
type trait struct {
	fault Fault
	why   string
}

const (
	inMemory     = "it is kept in memory and gone with the machine"
	objectStore  = "it makes files of a bucket's objects, and two makers of one name both succeed"
	noHardLinks  = "it has no hard links, so two makers of one name can't be told apart"
	fsyncUnknown = "it passes files on to another system without a promise that fsync is kept"
)

// traitOf tells what is known to be wrong with a kind of file system, by the
// name that the kernel has for it. Of all others the probe has to find out.
func traitOf(kind string) (t trait, known bool) {
	switch kind {
	case "tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs":
		return trait{Forgets, inMemory}, true
	case "9p":
		return trait{Forgets, fsyncUnknown}, true
	case "vfat", "msdos", "fat", "exfat", "fuse.exfat", "vboxsf", "prl_fs":
		return trait{NoLink, noHardLinks}, true
	case "fuse.sshfs":
		return trait{ListingLags, "its listings and attributes lag behind what others do"}, true
	}
	program, isFuse := strings.CutPrefix(kind, "fuse.")
	if isFuse && overBucket(program) {
		return trait{TwoWinners, objectStore}, true
	}
	return trait{}, false
}

// overBucket tells whether a program shows an object store as files.
func overBucket(program string) bool {
	switch program {
	case "s3fs", "gcsfuse", "rclone", "goofys", "geesefs", "mountpoint-s3", "mount-s3", "blobfuse", "blobfuse2", "ossfs", "cosfs", "riofs", "yas3fs":
		return true
	}
	return false
}

// unfit tells why a store must not lie on a file system, if that is known.
func (m mounted) unfit() (t trait, known bool) {
	if m.kind == "overlay" {
		for _, o := range m.options {
			if o == "volatile" {
				return trait{Forgets, "it is mounted with the option volatile, which ignores fsync"}, true
			}
		}
	}
	if m.kind == "fuse" && overBucket(m.source) {
		return trait{TwoWinners, objectStore}, true
	}
	return traitOf(m.kind)
}

// maxMountTable bounds the mount table that is read, in bytes.
const maxMountTable = 4 << 20

// findMount looks for the mount of a device, "254:0", in a table of the form of
// /proc/self/mountinfo (proc(5)): the later line of two counts.
func findMount(table, device string) (found mounted, ok bool) {
	for line := range strings.Lines(table) {
		before, after, has := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !has || len(head) < 6 || len(tail) < 3 || head[2] != device {
			continue
		}
		found = mounted{kind: tail[0], source: tail[1], options: strings.Split(tail[2], ",")}
		ok = true
	}
	return found, ok
}

// Fault is what is wrong with a place that can't be a store.
type Fault string

// The faults of a place.
const (
	Forgets     Fault = "forgets"      // what was synced may be gone after a power loss
	NoLink      Fault = "no link"      // there are no hard links
	TwoWinners  Fault = "two winners"  // several creates of one name succeed
	Unreadable  Fault = "unreadable"   // a reader doesn't see the bytes of who made the name
	ListingLags Fault = "listing lags" // a listing doesn't show what was made before it
	RenameFails Fault = "rename fails" // a rename doesn't replace
	NoSync      Fault = "no sync"      // files or folders can't be synced
)

// UnfitError says that a folder can't be a checkpoint store: its file system
// doesn't keep, or is known not to keep, what a store promises.
type UnfitError struct {
	// Store is the folder.
	Store string
	// FileSystem is the kernel's name for it, or "unknown".
	FileSystem string
	// Fault is the promise that isn't kept.
	Fault Fault
	// Why says what was found, or what is known of this file system.
	Why string
}

// Error implements error.
func (e *UnfitError) Error() string {
	out := "Put the store on a local disk (ext4, xfs, btrfs, zfs, apfs) or on NFS."
	if e.Fault == Forgets {
		out = "Put the store on a disk; or, if losing the job's state with the machine is fine, run with --volatile."
	}
	return fmt.Sprintf("store %s: expected a file system that keeps create-if-absent and fsync, found %s: %s. %s", e.Store, e.FileSystem, e.Why, out)
}
