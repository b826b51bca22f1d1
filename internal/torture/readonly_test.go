//go:build linux

package torture

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// plainUser is a user without rights, which every system has a number for.
	plainUser = 65534
	// confinedIn names the folder of a job that is to be confined, for the
	// process that does so.
	confinedIn = "SLUICE_TORTURE_CONFINED_IN"
	// cantConfine is that process's exit code if the system doesn't let it.
	cantConfine = 97
)

// writable are the folders, below the job's own, that it may write to: its
// store, and what its sink is for.
var writable = []string{"store", "out"}

// TestPlainUser runs a job as a user without rights, on a root that is
// read-only but for the store and the sink's folder, from a fresh start to the
// end of its input, and again with more input.
func TestPlainUser(t *testing.T) {
	t.Parallel()
	bin := build(t, &binaries.spend, "spend/...")
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil { // it is for the test's user alone
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(folder, "job"), filepath.Join(bin, "base"), 0o755)
	for _, name := range writable {
		mine(t, filepath.Join(folder, name))
	}
	appendSpend(t, folder, spendOrders(0, spendHalf))
	confined(t, folder)
	after := spendOrders(spendHalf, 2*spendHalf)
	appendSpend(t, folder, after)
	confined(t, folder)
	sameRows(t, filepath.Join(folder, "out", "rows"), restart{build: "base"}.rows(after))
	for _, name := range writable {
		ownedByPlain(t, filepath.Join(folder, name))
	}
}

// confined runs the job to the end of its input, confined as far as the system
// allows, and holds what is not the job's to write against what it was.
func confined(t *testing.T, folder string) {
	t.Helper()
	args := []string{"run", "--store", "store", "--epoch", "20ms", "--listen", "localhost:0"}
	before := untouchable(t, folder)
	r := onReadOnlyRoot(t, folder, args)
	if r.code == cantConfine {
		t.Logf("no read-only root on this machine: %s; the job runs by permissions alone", strings.TrimSpace(r.stderr))
		r = byPermissions(t, folder, args)
	}
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	sameFiles(t, before, untouchable(t, folder))
}

// onReadOnlyRoot runs the job in a mount namespace of its own. It takes root
// to make one, and a process that gives that away before it becomes the job.
func onReadOnlyRoot(t *testing.T, folder string, args []string) result {
	t.Helper()
	if os.Getuid() != 0 {
		return result{code: cantConfine, stderr: "it takes root to make one"}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-test.run=^TestConfine$", "--"}, args...)...)
	cmd.Env = append(os.Environ(), confinedIn+"="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return finish(t, folder, cmd)
}

// byPermissions runs the job as a plain user, who can't write to folders that
// aren't its own.
func byPermissions(t *testing.T, folder string, args []string) result {
	t.Helper()
	cmd := exec.Command(filepath.Join(folder, "job"), args...)
	cmd.Env = []string{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	}
	for _, name := range []string{folder, filepath.Join(folder, "in")} {
		if err := os.Chmod(name, 0o555); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(name, 0o755)
	}
	return finish(t, folder, cmd)
}

// finish runs a command to its end.
func finish(t *testing.T, folder string, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &stdout, &stderr
	if err := cmd.Start(); errors.Is(err, fs.ErrPermission) {
		return result{code: cantConfine, stderr: err.Error()}
	} else if err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(patience, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	cmd.Wait()
	if !hung.Stop() {
		t.Fatalf("the job has not ended after %v:\n%s", patience, stderr.String())
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// TestConfine is the process between [TestPlainUser] and its job.
func TestConfine(t *testing.T) {
	folder := os.Getenv(confinedIn)
	if folder == "" {
		t.Skip("runs as a process of its own, which TestPlainUser starts")
	}
	os.RemoveAll(binaries.folder) // TestMain won't come to it
	if err := confine(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cantConfine)
	}
	// The environment is empty: no home, no folder for temporary files.
	err := syscall.Exec(filepath.Join(folder, "job"), append([]string{"job"}, flag.Args()...), []string{})
	fmt.Fprintln(os.Stderr, "becoming the job:", err)
	os.Exit(1)
}

// confine makes all mounts of this process's namespace read-only, but for the
// writable folders, and gives up root.
func confine(folder string) error {
	points, err := mountPoints()
	if err != nil {
		return err
	}
	for _, name := range writable {
		name = filepath.Join(folder, name)
		if err := syscall.Mount(name, name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", name, err)
		}
	}
	var failed error
	for _, point := range points {
		if err := syscall.Mount("", point, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
			failed = fmt.Errorf("making %s read-only: %w", point, err) // told if it matters
		}
	}
	for _, place := range []string{"/", os.TempDir(), folder, filepath.Join(folder, "in")} {
		file := filepath.Join(place, "confined")
		if err := os.WriteFile(file, nil, 0o644); !errors.Is(err, syscall.EROFS) {
			os.Remove(file)
			return errors.Join(fmt.Errorf("writing to %s ends with %v, expected a read-only file system", place, err), failed)
		}
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(plainUser), syscall.Setuid(plainUser))
}

// mountPoints lists where file systems are mounted.
func mountPoints() (points []string, err error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, escapes.Replace(fields[4]))
		}
	}
	return points, nil
}

// untouchable is what the job's folder holds besides what it may write to.
func untouchable(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()] = "is there"
	}
	data, err := os.ReadDir(filepath.Join(folder, "in"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range data {
		text, err := os.ReadFile(filepath.Join(folder, "in", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all["in/"+e.Name()] = string(text)
	}
	return all
}

// mine makes a folder that belongs to the plain user; for anybody but root
// that is who runs the test.
func mine(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(folder, plainUser, plainUser); err != nil {
			t.Fatal(err)
		}
	}
}

// ownedByPlain looks at who wrote what is in a folder.
func ownedByPlain(t *testing.T, folder string) {
	t.Helper()
	want, files := plainUser, 0
	if os.Getuid() != 0 {
		want = os.Getuid()
	}
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		files++
		if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != want {
			t.Errorf("%s belongs to user %d, expected %d", name, owner, want)
		}
		return nil
	})
	if err != nil || files < 2 {
		t.Errorf("%s: %d files, %v", folder, files, err)
	}
}

func copyFile(t *testing.T, to, from string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, mode); err != nil {
		t.Fatal(err)
	}
}
