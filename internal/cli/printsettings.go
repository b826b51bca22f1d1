package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printsSettings gives a command the flag --print-settings.
func printsSettings(c *cobra.Command) *cobra.Command {
	only := c.Flags().Bool("print-settings", false, "print each setting, its value and where it is from, and do nothing else (default false)")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if *only {
			return printSettings(c)
		}
		return run(c, args)
	}
	return c
}

// oneSetting is a setting as it is printed for machines.
type oneSetting struct {
	Setting string   `json:"setting"`
	Value   string   `json:"value,omitempty"`
	Values  []string `json:"values,omitempty"` // of a list
	From    string   `json:"from"`             // flag, default, the variable, or the file and its line
}

func printSettings(c *cobra.Command) error {
	var all []oneSetting
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(unsettable, f.Name) {
			all = append(all, settingOf(f))
		}
	})
	if asJSON(c) {
		for _, s := range all {
			if err := writeJSON(c.OutOrStdout(), s); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(text("setting"), text("value"), text("from"))
	for _, s := range all {
		value := s.Value
		if s.Values != nil {
			value = strings.Join(s.Values, ", ")
		}
		t.row(s.Setting, value, s.From)
	}
	return t.write(c.OutOrStdout())
}

func settingOf(f *pflag.Flag) oneSetting {
	s := oneSetting{Setting: f.Name, Value: f.Value.String(), From: "default"}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		s.Value, s.Values = "", list.GetSlice()
	}
	switch from := f.Annotations[origin]; {
	case len(from) > 0:
		s.From = from[0]
	case f.Changed:
		s.From = "flag"
	}
	return s
}
