package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/people"
)

const wide = "wide"

// output are the flags that say how a command prints.
type output struct{ format string }

// formats are the values of -o that need no template.
func formats() []string {
	return []string{"json", "yaml", "name", wide, "jsonpath=", "go-template="}
}

func (o *output) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", strings.Join(formats(), ", "))
	complete := cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	_ = cmd.RegisterFlagCompletionFunc("output", complete) // fails for a flag that there is not
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
		return nil, cli.Usage(err)
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

// kubectlFormats are kubectl's formats, for the commands that idalloc has, too.
func kubectlFormats(string) people.Formats {
	return people.Formats{Names: append([]string{""}, formats()...), Printer: func(name, template string) (people.Printer, error) {
		o := output{name + template}
		if _, err := o.printer(); err != nil {
			return nil, err
		}
		return func(w io.Writer, list bool, items ...people.Item) error {
			all := make([]item, 0, len(items))
			for _, i := range items {
				all = append(all, item{about(i.About.APIVersion, i.About.Kind, i.About.Namespace, i.About.Name), i.Kind, i.Data})
			}
			return o.items(w, list, all...)
		}, nil
	}}
}
