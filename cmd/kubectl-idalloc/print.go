package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/idalloc/idalloc/internal/inspect"
)

const wide = "wide"

// output are the flags that say how a command prints.
type output struct {
	format    string
	noHeaders bool
}

// formats are the values of -o that need no template.
func formats() []string {
	return []string{"json", "yaml", "name", wide, "jsonpath=", "go-template="}
}

func (o *output) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, yaml, name, wide, jsonpath=TEMPLATE or go-template=TEMPLATE; default: for people")
	complete := cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	_ = cmd.RegisterFlagCompletionFunc("output", complete) // fails for a flag that there is not
}

func (o *output) tableFlags(cmd *cobra.Command) {
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print no titles of columns")
}

// people reports whether the output is for people, as a table or sentences.
func (o *output) people() bool { return o.format == "" || o.format == wide }

// printer returns the printer of objects, nil if the output is for people.
func (o *output) printer() (printers.ResourcePrinter, error) {
	format, template, _ := strings.Cut(o.format, "=")
	var (
		p   printers.ResourcePrinter
		err error
	)
	switch {
	case o.people():
		return nil, nil //nolint:nilnil // there is none
	case o.format == "json":
		p = &printers.JSONPrinter{}
	case o.format == "yaml":
		p = &printers.YAMLPrinter{}
	case o.format == "name":
		p = &printers.NamePrinter{}
	case format == "jsonpath" && template != "":
		p, err = printers.NewJSONPathPrinter(template)
	case format == "go-template" && template != "":
		p, err = printers.NewGoTemplatePrinter([]byte(template))
	default:
		err = fmt.Errorf("-o %q: use %s", o.format, strings.Join(formats(), ", "))
	}
	if err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// item is something to print, and the object that it is about, which -o name prints.
type item struct {
	about metav1.PartialObjectMetadata
	kind  string
	data  any
}

// about returns the object that an item is about.
func about(apiVersion, kind, namespace, name string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// object returns the data in the shape of a Kubernetes object.
func (i item) object() (*unstructured.Unstructured, error) {
	text, err := json.Marshal(i.data)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return nil, err
	}
	u.SetAPIVersion("idalloc.dev/v1")
	u.SetKind(i.kind)
	if i.about.Name != "" {
		u.SetName(i.about.Name)
	}
	if i.about.Namespace != "" {
		u.SetNamespace(i.about.Namespace)
	}
	return u, nil
}

// items prints items for programs: one as it is, or all as a list.
func (o *output) items(w io.Writer, list bool, items ...item) error {
	p, err := o.printer()
	if err != nil {
		return err
	}
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, i := range items {
		if o.format == "name" {
			if err := p.PrintObj(&i.about, w); err != nil {
				return err
			}
			continue
		}
		u, err := i.object()
		if err != nil {
			return err
		}
		all.Items = append(all.Items, *u)
	}
	switch {
	case o.format == "name":
		return nil
	case list:
		return p.PrintObj(all, w)
	}
	for k := range all.Items {
		if err := p.PrintObj(&all.Items[k], w); err != nil {
			return err
		}
	}
	return nil
}

// table prints rows for people.
func (o *output) table(w io.Writer, columns inspect.Columns, rows [][]string) error {
	return printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.noHeaders, Wide: o.format == wide}).PrintObj(tableOf(columns, rows), w)
}

func tableOf(columns inspect.Columns, rows [][]string) runtime.Object {
	t := &metav1.Table{}
	for priority, names := range [][]string{columns.Always, columns.Wide} {
		for _, name := range names {
			t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: int32(priority)})
		}
	}
	for _, row := range rows {
		var r metav1.TableRow
		for _, cell := range row {
			r.Cells = append(r.Cells, cell)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}
