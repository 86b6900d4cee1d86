package people

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const wide = "wide"

// Formats are what a command can print.
type Formats struct {
	// Names are the values of -o. The first one is the default, and stands for tables and sentences. "wide" stands for wider tables. A name that
	// ends in = needs a template. Without names a command has no -o.
	Names []string
	// Printer returns how one of the names for programs is printed. template is what stands behind its =. Errors: a template that makes no sense.
	Printer func(name, template string) (Printer, error)
}

// String lists the names, without an empty one.
func (f Formats) String() string { return strings.TrimPrefix(strings.Join(f.Names, ", "), ", ") }

// Printer prints items for programs: one as it is, or all as a list.
type Printer func(w io.Writer, list bool, items ...Item) error

// Item is something to print, and the workload that it is about.
type Item struct {
	About store.Ref
	Kind  string
	Data  any
}

// Output is how a command prints.
type Output struct {
	formats   Formats
	format    string
	noHeaders bool
}

func (o *Output) flags(cmd *cobra.Command) {
	names := o.formats.Names
	if len(names) == 0 {
		return
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", names[0], o.formats.String())
	complete := cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	_ = cmd.RegisterFlagCompletionFunc("output", complete) // fails for a flag that there is not
	if cmd.Name() == "get" {
		cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print no titles of columns")
	}
}

// ForPeople reports whether tables and sentences are to be printed.
func (o *Output) ForPeople() bool {
	return len(o.formats.Names) == 0 || o.format == o.formats.Names[0] || o.format == wide && slices.Contains(o.formats.Names, wide)
}

// printer returns what prints for programs, nil if the output is for people. Errors: a cli.UsageError.
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

// Items prints items for programs: one as it is, or all as a list.
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
func NameOf(ref store.Ref) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(ref.Kind), ref.GVR().Group, ref.Name)
}
