package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// defaultConfig is the file of settings that is read if it is there and no
// other is named.
const defaultConfig = "sluice.conf"

// unsettable are the flags that belong to one command line: the environment and
// the file can't give them. A person takes a job over, or goes back to a replaced
// build, once; a supervisor that did so at each restart would undo what others do.
var unsettable = []string{"help", "config", "print-settings", "no-descriptions", "takeover", "replace", "from", "offline", "again", "rehearse", "fresh"}

// shared are the settings that the sluice command has in common with a job's
// own: what its other flags mean may be something else there.
var shared = []string{"store", "keep", "keep-epochs"}

// addConfig gives a command, and those below it, the flag --config.
func addConfig(c *cobra.Command) {
	c.PersistentFlags().String("config", defaultConfig, "the `file` of settings, in lines such as epoch = 2s; also SLUICE_CONFIG")
	mayBeEmpty(c.PersistentFlags(), "config")
}

// emptiable is the annotation of a flag for which an empty value is one like others.
const emptiable = "sluice_emptiable"

// mayBeEmpty says of a flag that an empty value is one like others: given as a flag, or by
// a variable that is set.
func mayBeEmpty(flags *pflag.FlagSet, name string) {
	flags.Lookup(name).Annotations = map[string][]string{emptiable: {"true"}}
}

// refuseEmpty refuses flags that are given without a value: a script's variable that is
// not set would pass for a flag that was left out.
func refuseEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if err == nil && f.Annotations[emptiable] == nil && slices.Contains(values, "") {
			err = usagef("--%s: its value is empty; give one, or leave the flag out", f.Name)
		}
	})
	return err
}

// settle sets the flags of a command that were not given: from the environment,
// SLUICE_EPOCH for --epoch, or else from the file of settings. The file may have
// any setting of known, of which only those that the command has are taken. If
// only isn't nil, the others are left alone.
func settle(c *cobra.Command, known, only []string) error {
	err := refuseEmpty(c.Flags())
	if err == nil {
		err = settleFlags(c.Flags(), known, only)
	}
	if strings.HasPrefix(c.Name(), cobra.ShellCompRequestCmd) {
		return nil // what is being completed may be what is wrong
	}
	return err
}

func settleFlags(flags *pflag.FlagSet, known, only []string) error {
	file, err := readConfig(flags.Lookup("config"), known)
	if err != nil {
		return err
	}
	flags.VisitAll(func(f *pflag.Flag) {
		value, set := os.LookupEnv(variable(f.Name))
		switch given := file[f.Name]; {
		case err != nil || f.Changed || slices.Contains(unsettable, f.Name) || only != nil && !slices.Contains(only, f.Name):
		case value != "" || set && f.Annotations[emptiable] != nil:
			err = fromEnvironment(f)
		case given != nil:
			err = fromFile(f, given)
		}
	})
	return err
}

// variable is the environment's name for a flag.
func variable(flag string) string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets a flag from its variable. A list is divided by commas.
func fromEnvironment(f *pflag.Flag) error {
	name := variable(f.Name)
	value := os.Getenv(name)
	values := []string{value}
	if isList(f) {
		values = strings.Split(value, ",")
	}
	if err := set(f, values, name); err != nil {
		return usagef("%s=%s, for the flag --%s: %w; %s", name, value, f.Name, err, expected(f))
	}
	return nil
}

// fromFile sets a flag to what the file of settings gives.
func fromFile(f *pflag.Flag, given []setting) error {
	if again := len(given) > 1; again && !isList(f) {
		return usagef("%s: %s is set again, after line %d; keep one of the two", given[1].from, f.Name, given[0].line)
	}
	values := make([]string, len(given))
	for i, s := range given {
		values[i] = s.value
	}
	if err := set(f, values, given[0].from); err != nil {
		return usagef("%s: %s = %s: %w; %s", given[0].from, f.Name, given[0].value, err, expected(f))
	}
	return nil
}

// origin is the annotation of a flag that says where its value is from.
const origin = "sluice_origin"

func set(f *pflag.Flag, values []string, from string) (err error) {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		err = list.Replace(values)
	} else {
		err = f.Value.Set(values[0])
	}
	if err != nil {
		return err
	}
	f.Changed = true
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[origin] = []string{from}
	return nil
}

func isList(f *pflag.Flag) bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// expected says what a flag takes.
func expected(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "use true or false"
	case "duration":
		return "use a time such as 500ms, 30s or 10m"
	case "int", "int64", "uint", "uint64":
		return "use a whole number"
	}
	return "look at --help for what it takes"
}

// readConfig reads the file that the flag --config, SLUICE_CONFIG or the default
// names, by settings. A file that was named has to be there; an empty name
// stands for none.
func readConfig(named *pflag.Flag, known []string) (map[string][]setting, error) {
	if named == nil {
		return nil, nil
	}
	name, asked := named.Value.String(), named.Changed
	if value, ok := os.LookupEnv(variable(named.Name)); ok && !asked {
		name, asked = value, true
	}
	if name == "" {
		return nil, nil
	}
	data, err := readBounded(name)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return nil, nil
	}
	if err != nil {
		return nil, usagef("the file of settings %s can't be read: %w; name another with --config", strconv.Quote(name), err)
	}
	settings, err := parseSettings(name, data, known)
	if err != nil {
		return nil, usageError{err}
	}
	return settings, nil
}

// maxConfig bounds a file of settings, in bytes: a name that leads to something
// else is told before it fills the memory.
const maxConfig = 64 << 10

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("it has more than %d bytes", maxConfig)
	}
	return data, err
}

// settingNames are the names of the flags of a command and of all below it that
// the environment and the file may set.
func settingNames(root *cobra.Command) (names []string) {
	take := func(f *pflag.Flag) {
		if !slices.Contains(unsettable, f.Name) {
			names = append(names, f.Name)
		}
	}
	for _, c := range root.Commands() {
		names = append(names, settingNames(c)...)
	}
	root.PersistentFlags().VisitAll(take)
	root.LocalFlags().VisitAll(take)
	slices.Sort(names)
	return slices.Compact(names)
}
