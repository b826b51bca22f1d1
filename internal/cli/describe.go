package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/internal/window"
)

// description is what a job is, for machines: its version, under its name.
type description struct {
	Job     string        `json:"job"`
	Hash    string        `json:"hash"`
	Version epoch.Version `json:"version"`
}

func describeCommand(job Job) *cobra.Command {
	var dot bool
	c := &cobra.Command{
		Use:   "describe",
		Short: "What the job consists of",
		Long: `What the job consists of: its sources, event times, operators, states and sinks, with their
schemas, their parameters and the names of the functions that they call. Steps
without a name of their own stand for what is before them.`,
		Args: arguments(0, 0),
	}
	c.Flags().BoolVar(&dot, "dot", false, "write a graph for Graphviz: … describe --dot | dot -Tsvg (default false)")
	c.Flags().Bool("json", false, "write it as a JSON object (default false)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if dot && asJSON(c) {
			return usagef("--dot and --json: one of the two")
		}
		if err := job.Check(); err != nil {
			return err
		}
		v := job.Version()
		hash, err := v.Hash()
		if err != nil {
			return err
		}
		d := description{job.Name, hash, v}
		switch w := c.OutOrStdout(); {
		case asJSON(c):
			return writeJSON(w, d)
		case dot:
			return d.dot(w)
		default:
			return d.words(w)
		}
	}
	return c
}

// words tells the job part by part, a line each.
func (d description) words(w io.Writer) error {
	style := stylesFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, version %s\n", style.head("job"), d.Job, short(d.Hash))
	line := func(kind, name string, parts ...string) {
		b.WriteString(style.head(kind) + " " + name)
		sep := ": "
		for _, part := range parts {
			if part != "" {
				b.WriteString(sep + part)
				sep = ", "
			}
		}
		b.WriteString("\n")
	}
	v := d.Version
	for name, p := range sorted(v.Sources) {
		line("source", name, p.Kind, parameters(p))
	}
	for name, p := range sorted(v.Times) {
		line("time", name, p.Kind+inputs(p), parameters(p), d.function("by ", epoch.TimeFunction(name)))
	}
	for name, p := range sorted(v.Operators) {
		line("operator", name, p.Kind+inputs(p), windows(p), times(p), d.function("by ", name), d.function("keyed by ", epoch.KeyFunction(name)))
	}
	for name, s := range sorted(v.States) {
		line("state", name, "of "+s.Operator, "key "+shapeOf(s.Key), element(s), limit(s), "value "+shapeOf(s.Value), meaning(s))
	}
	for name, p := range sorted(v.Sinks) {
		line("sink", name, p.Kind+inputs(p), parameters(p), rowKey(p), "row "+shapeOf(p.Schemas["row"]), d.function("made by ", epoch.RowFunction(name)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func inputs(p epoch.Part) string {
	if len(p.Inputs) == 0 {
		return ""
	}
	return " of " + strings.Join(p.Inputs, " and ")
}

func times(p epoch.Part) string {
	if len(p.Times) == 0 {
		return ""
	}
	return "by the event time of " + strings.Join(p.Times, " and ")
}

// function tells the name of the user's function for a part, if it has one.
func (d description) function(what, part string) string {
	name := d.Version.Functions[part]
	if name == "" {
		return ""
	}
	return what + name
}

func parameters(p epoch.Part) string {
	var parts []string
	for name, value := range sorted(p.Parameters) {
		parts = append(parts, name+" "+value)
	}
	return strings.Join(parts, ", ")
}

// windows tells what the windows of an operator are, or its parameters if it has none.
func windows(p epoch.Part) string {
	d, err := window.Among(p.Parameters)
	if p.Kind != epoch.WindowKind || err != nil {
		return parameters(p)
	}
	text := waiting(d.String(), p.Parameters[epoch.AllowedLateness])
	if firings := p.Parameters[epoch.Firings]; firings != "" {
		text += ", put out " + firings
	}
	return text
}

// waiting tells of windows how long they wait behind their ends, if they do.
func waiting(windows, allowed string) string {
	if allowed == "" {
		return windows
	}
	if d, err := time.ParseDuration(allowed); err == nil {
		allowed = window.Length(d)
	}
	return windows + ", allowed lateness " + allowed
}

func element(s epoch.StateSchemas) string {
	if s.Element == "" {
		return ""
	}
	return "element " + shapeOf(s.Element)
}

func limit(s epoch.StateSchemas) string {
	switch {
	case s.Limit == 0:
		return ""
	case s.Descending:
		return fmt.Sprintf("the greatest %d", s.Limit)
	}
	return fmt.Sprintf("the smallest %d", s.Limit)
}

func meaning(s epoch.StateSchemas) string {
	if s.Meaning == 0 {
		return ""
	}
	return fmt.Sprintf("meaning %d", s.Meaning)
}

func rowKey(p epoch.Part) string {
	if p.Schemas["key"] == "" {
		return ""
	}
	return "key " + shapeOf(p.Schemas["key"])
}

// dot draws the job as a graph in the language of Graphviz. Sinks may have the
// names of other parts.
func (d description) dot(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n\trankdir=LR\n\tnode [shape=box, fontname=sans]\n", quote(d.Job))
	node := func(id, kind, name, shape string, lines ...string) {
		fmt.Fprintf(&b, "\t%s [shape=%s, label=%s]\n", quote(id), shape, quote(strings.Join(append([]string{kind + " " + name}, lines...), "\n")))
	}
	edges := func(id string, p epoch.Part) {
		for _, from := range p.Inputs {
			fmt.Fprintf(&b, "\t%s -> %s\n", quote(from), quote(id))
		}
	}
	v := d.Version
	for name, p := range sorted(v.Sources) {
		node(name, "source", name, "cds", p.Kind, parameters(p))
	}
	for name, p := range sorted(v.Operators) {
		lines := []string{d.Version.Functions[name]}
		for state, s := range sorted(v.States) {
			if s.Operator == name {
				lines = append(lines, state+": "+shapeOf(s.Key)+" → "+shapeOf(s.Value))
			}
		}
		node(name, p.Kind, name, "cylinder", append(lines, windows(p))...)
		edges(name, p)
	}
	for name, p := range sorted(v.Sinks) {
		id := "sink " + name
		node(id, "sink", name, "note", p.Kind, parameters(p))
		edges(id, p)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quote writes a string of the language dot. Empty lines of labels are dropped.
func quote(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			lines = append(lines, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(line))
		}
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
