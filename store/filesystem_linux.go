package store

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/sluicestream/sluice/env"
)

// mountTable is where the kernel lists the mounts that this process sees.
const mountTable = "/proc/self/mountinfo"

// mountOf tells on which file system a folder lies: by the mount table, and
// where that doesn't know its device (btrfs gives each subvolume one of its
// own), by the kernel's number for the kind.
func mountOf(files env.FS, folder string) mounted {
	info, err := files.Stat(folder)
	if err != nil {
		return mounted{}
	}
	device, ok := deviceOf(info)
	if !ok {
		return mounted{} // a simulated file system
	}
	if table, err := readTable(files); err == nil {
		if m, ok := findMount(table, device); ok {
			return m
		}
	}
	var found syscall.Statfs_t
	if err := syscall.Statfs(folder, &found); err != nil {
		return mounted{}
	}
	return mounted{kind: kindOf(uint32(found.Type))}
}

// deviceOf is a file's device as the mount table writes it.
func deviceOf(info fs.FileInfo) (string, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	d := uint64(stat.Dev) // as the C library packs it, see makedev(3)
	major := d>>8&0xfff | d>>32&^0xfff
	minor := d&0xff | d>>12&0xffffff00
	return fmt.Sprintf("%d:%d", major, uint32(minor)), true
}

func readTable(files env.FS) (string, error) {
	f, err := files.Open(mountTable)
	if err != nil {
		return "", err
	}
	defer f.Close()
	table, err := io.ReadAll(io.LimitReader(f, maxMountTable))
	return string(table), err
}

// kindOf names a kind of file system by its number in statfs(2).
func kindOf(magic uint32) string {
	switch magic {
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683e:
		return "btrfs"
	case 0x2fc12fc1:
		return "zfs"
	case 0xf2f52010:
		return "f2fs"
	case 0xca451a4e:
		return "bcachefs"
	case 0x6969:
		return "nfs"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "cifs"
	case 0x794c7630:
		return "overlay"
	case 0x00c36400:
		return "ceph"
	case 0x65735546:
		return "fuse"
	case 0x01021994:
		return "tmpfs"
	case 0x858458f6:
		return "ramfs"
	case 0x01021997:
		return "9p"
	case 0x786f4256:
		return "vboxsf"
	case 0x4d44:
		return "vfat"
	case 0x2011bab0:
		return "exfat"
	}
	return unknownFS
}
