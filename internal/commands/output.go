package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// Formats for people. table prints sentences if there are no rows.
const (
	table = "table"
	wide  = "wide"
)

// Formats holds the values of a program's flag -o. They are the same for all its commands.
type Formats struct {
	// Names are the machine-readable formats. A name that ends in = needs a template.
	Names []string
	// Printer returns the printer for one of the names. template is the text after its =. The error explains why the template is invalid.
	Printer func(name, template string) (Printer, error)
}

// all returns all names, with the formats for people first.
func (f Formats) all() []string { return append([]string{table, wide}, f.Names...) }

// String lists the names.
func (f Formats) String() string { return strings.Join(f.all(), ", ") }

// Printer prints items in a machine-readable format: one item by itself, or all as a list.
type Printer func(w io.Writer, list bool, items ...Item) error

// Item is something to print, and its workload.
type Item struct {
	About kinds.Ref
	Kind  string
	Data  any
}

// Output is the flag -o of a command.
type Output struct {
	formats   Formats
	format    string
	noHeaders bool
}

// NewOutput adds the flag to a command.
func NewOutput(cmd *cobra.Command, formats Formats) *Output {
	o := &Output{formats: formats}
	cmd.Flags().StringVarP(&o.format, "output", "o", table, formats.String())
	complete := cobra.FixedCompletions(formats.all(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	_ = cmd.RegisterFlagCompletionFunc("output", complete) // fails only for a flag that does not exist
	return o
}

// ForPeople reports whether the output should be tables and sentences.
func (o *Output) ForPeople() bool { return o.format == table || o.format == wide }

// Check returns a cli.UsageError if the format does not exist.
func (o *Output) Check() error {
	_, err := o.printer()
	return err
}

// Is reports whether the format has this name.
func (o *Output) Is(name string) bool { return o.format == name }

// printer returns the machine-readable printer, or nil if the output is for people. The error is a cli.UsageError.
func (o *Output) printer() (Printer, error) {
	if o.ForPeople() {
		return nil, nil //nolint:nilnil // there is none
	}
	name, template, templated := strings.Cut(o.format, "=")
	if templated {
		name += "="
	}
	if !slices.Contains(o.formats.Names, name) || templated && template == "" {
		return nil, cli.Usagef("-o %q: use %s", o.format, o.formats)
	}
	printer, err := o.formats.Printer(name, template)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return printer, nil
}

// Items prints items in a machine-readable format: one item by itself, or all as a list.
func (o *Output) Items(w io.Writer, list bool, items ...Item) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	return printer(w, list, items...)
}

// Table prints rows for people.
func (o *Output) Table(w io.Writer, columns inspect.Columns, rows [][]string) error {
	return columns.Write(w, rows, o.format == wide, !o.noHeaders)
}

// NameOf returns a workload's name as kubectl prints it: deployment.apps/worker.
func NameOf(ref kinds.Ref) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(ref.Kind), ref.GVR().Group, ref.Name)
}
