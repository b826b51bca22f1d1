package cli

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// givenOffsets are where a person has sources begin.
type givenOffsets struct {
	offsets map[string]int64 // by the partitions' names
	groups  []string
	begin   bool // sources begin there, and where a new job would if they have none
}

const (
	// groupPrefix begins a group of consumers in the place of offsets.
	groupPrefix = "group:"
	// maxOffsetsFile bounds a file of offsets: far more than partitions there are.
	maxOffsetsFile = 16 << 20
)

// offsetsFlag names offsets in upgrade and import.
const offsetsFlag = "offsets"

// parseOffsets reads the values of a flag such as --offsets: PARTITION=OFFSET with commas
// between, group:NAME, JSON as Spark has it, or a file of these.
func parseOffsets(flag string, values []string) (givenOffsets, error) {
	g := givenOffsets{offsets: map[string]int64{}, begin: flag == offsetsFlag}
	for _, value := range values {
		if err := g.add(value); err != nil {
			return g, usagef("--%s %.80s: %w", flag, value, err)
		}
	}
	return g, nil
}

func (g *givenOffsets) add(value string) error {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return errors.New("it is empty")
	case strings.HasPrefix(value, groupPrefix) && !strings.Contains(value, "="):
		g.groups = append(g.groups, strings.TrimPrefix(value, groupPrefix))
		return nil
	case value[0] == '{':
		return g.addJSON(value)
	case strings.Contains(value, "="):
		return g.addList(strings.Split(value, ","))
	}
	data, err := readOffsets(value)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no such file, and it is no PARTITION=OFFSET (%w)", err)
	}
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(data); strings.HasPrefix(text, "{") {
		return g.addJSON(text)
	}
	return g.addList(strings.Split(data, "\n"))
}

func readOffsets(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxOffsetsFile {
		return "", fmt.Errorf("a file of at most %d bytes is expected, it has %d", maxOffsetsFile, info.Size())
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// addList adds PARTITION=OFFSET one by one. Empty ones, and those that begin with #,
// are left out.
func (g *givenOffsets) addList(list []string) error {
	for _, one := range list {
		one = strings.TrimSpace(one)
		if one == "" || one[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(one, '=')
		if cut < 1 {
			return fmt.Errorf("%.80q: expected PARTITION=OFFSET", one)
		}
		next, err := strconv.ParseInt(one[cut+1:], 10, 64)
		if err != nil {
			return fmt.Errorf("%.80q: expected a number behind the =", one)
		}
		if err := g.set(one[:cut], next); err != nil {
			return err
		}
	}
	return nil
}

func (g *givenOffsets) set(name string, next int64) error {
	switch {
	case next < 0 && g.begin:
		return fmt.Errorf("%s=%d: expected 0 or more; leave it out and use --begin-rest for where a new job would begin", name, next)
	case next < 0:
		return fmt.Errorf("%s=%d: expected 0 or more", name, next)
	}
	if was, ok := g.offsets[name]; ok && was != next {
		return fmt.Errorf("%s has two offsets, %d and %d", name, was, next)
	}
	g.offsets[name] = next
	return nil
}

// addJSON adds {"topic":{"0":123}}.
func (g *givenOffsets) addJSON(text string) error {
	var topics map[string]map[string]int64
	if err := json.Unmarshal([]byte(text), &topics); err != nil {
		return fmt.Errorf(`expected {"TOPIC":{"PARTITION":OFFSET}}: %w`, err)
	}
	for topic, partitions := range sorted(topics) {
		for partition, next := range sorted(partitions) {
			if err := g.set(topic+":"+partition, next); err != nil {
				return err
			}
		}
	}
	return nil
}
