package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// changer is a command that changes objects, or shows what it would change.
type changer struct {
	*global
	*commands.Output

	dryRun string
}

func (c *changer) bind(cmd *cobra.Command) {
	c.Output = commands.NewOutput(cmd, formats())
	cmd.Flags().StringVar(&c.dryRun, "dry-run", "none", "none, client (send nothing) or server (store nothing)")
}

func (c *changer) check() error {
	if c.dryRun != "none" && c.dryRun != "client" && c.dryRun != "server" {
		return cli.Usagef("--dry-run %q: use none, client or server", c.dryRun)
	}
	return c.Check()
}

// stores returns the dryRun values of a request.
func (c *changer) stores() []string {
	if c.dryRun == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func say(errs io.Writer, notes []string) error {
	for _, note := range notes {
		if _, err := fmt.Fprintln(errs, "note: "+note); err != nil {
			return err
		}
	}
	return nil
}

// print reports what was done to the objects, or prints the objects.
func (c *changer) print(out io.Writer, operation string, objects []*unstructured.Unstructured) error {
	if c.ForPeople() {
		operation += map[string]string{"client": " (dry run)", "server": " (server dry run)"}[c.dryRun]
		for _, object := range objects {
			if err := (&printers.NamePrinter{Operation: operation}).PrintObj(object, out); err != nil {
				return err
			}
		}
		return nil
	}
	items := make([]commands.Item, 0, len(objects))
	for _, object := range objects {
		of := kinds.Ref{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
		items = append(items, commands.Item{About: of, Data: object})
	}
	return c.Items(out, !c.Is("yaml"), items...)
}
