package services

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KafkaVersion is the broker's version.
const KafkaVersion = "4.4.0"

//go:embed kafka-pom.xml
var kafkaPOM []byte

const (
	// minJava is the oldest Java that runs this broker.
	minJava = 17
	// complete marks a folder that holds all jars.
	complete = ".complete"
)

// KafkaJars tells the folder with the broker's jars. It is $SLUICE_KAFKA_JARS if
// that is set; else what an earlier fetch has left in $KAFKA_JARS or in
// kafka-jars of the user's cache folder; else sluice/kafka-jars/<version> in that
// cache folder. A folder without jars is filled once, by mvn (54 MB, about ten
// seconds). Its error is a *[MissingError] where there is no way to fill it.
func KafkaJars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	folder := os.Getenv("SLUICE_KAFKA_JARS")
	if folder == "" {
		for _, root := range []string{os.Getenv("KAFKA_JARS"), filepath.Join(cache, "kafka-jars")} {
			if found := fetched(root); found != "" {
				return found, nil
			}
		}
		folder = filepath.Join(cache, "sluice", "kafka-jars", KafkaVersion)
	}
	if hasJars(folder) {
		return folder, nil
	}
	return folder, fetchJars(folder)
}

// fetched finds a complete folder of this version's jars: the root, or one in it.
func fetched(root string) string {
	if root == "" {
		return ""
	}
	below, _ := filepath.Glob(filepath.Join(root, "*"))
	for _, folder := range append([]string{root}, below...) {
		if hasJars(folder) {
			return folder
		}
	}
	return ""
}

func hasJars(folder string) bool {
	for _, name := range []string{complete, "kafka-server-" + KafkaVersion + ".jar"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
}

// fetchJars fills the folder; of several processes that try, one does, and the
// others wait for it.
func fetchJars(folder string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return &MissingError{"Kafka", "there are no jars in " + folder + ", and mvn, which fetches them once, is not in PATH", "put mvn into PATH, or name a folder that has the jars in SLUICE_KAFKA_JARS"}
	}
	above := filepath.Dir(folder)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(above, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if hasJars(folder) {
		return nil
	}
	fresh, err := os.MkdirTemp(above, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	pom := filepath.Join(fresh, "pom.xml")
	if err := os.WriteFile(pom, kafkaPOM, 0o644); err != nil {
		return err
	}
	out, err := exec.Command(mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+fresh).CombinedOutput()
	if err != nil {
		return &MissingError{"Kafka", fmt.Sprintf("mvn could not fetch the jars into %s (%v): %s", folder, err, complaintIn(string(out))), "run scripts/kafka jars where the network can be reached"}
	}
	if err := os.WriteFile(filepath.Join(fresh, complete), nil, 0o644); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil { // an unfinished one
		return err
	}
	return os.Rename(fresh, folder)
}

const putJava = "put a newer one into PATH, or name its folder in JAVA_HOME"

// findJava finds a Java that is new enough.
func findJava() (string, error) {
	java := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if _, err := os.Stat(java); os.Getenv("JAVA_HOME") == "" || err != nil {
		if java, err = exec.LookPath("java"); err != nil {
			return "", &MissingError{"Kafka", fmt.Sprintf("java %d or newer is neither in JAVA_HOME nor in PATH", minJava), putJava}
		}
	}
	out, err := exec.Command(java, "-version").CombinedOutput()
	if err != nil {
		return "", &MissingError{"Kafka", fmt.Sprintf("%s -version: %v", java, err), putJava}
	}
	if version := javaVersion(string(out)); version < minJava {
		return "", &MissingError{"Kafka", fmt.Sprintf("%s is Java %d, and %d or newer is needed", java, version, minJava), putJava}
	}
	return java, nil
}

// javaVersion reads the number from what java -version says; 0 if it can't.
func javaVersion(said string) int {
	_, rest, _ := strings.Cut(said, `version "`)
	digits := strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0]) // 1 for the old ones, which say 1.8
	return n
}
