package main

import (
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/idalloc/idalloc/internal/commands"
)

// Formats that this program has in addition to those of idalloc.
const (
	named      = "name"
	jsonPath   = "jsonpath="
	goTemplate = "go-template="
)

// formats returns kubectl's formats.
func formats() commands.Formats {
	return commands.Formats{Names: []string{"json", "yaml", named, jsonPath, goTemplate}, Printer: func(name, template string) (commands.Printer, error) {
		p, err := resourcePrinter(name, template)
		return func(w io.Writer, list bool, items ...commands.Item) error { return printItems(w, p, name, list, items) }, err
	}}
}

func resourcePrinter(name, template string) (printers.ResourcePrinter, error) {
	switch name {
	case "json":
		return &printers.JSONPrinter{}, nil
	case "yaml":
		return &printers.YAMLPrinter{}, nil
	case jsonPath:
		return printers.NewJSONPathPrinter(template)
	case goTemplate:
		return printers.NewGoTemplatePrinter([]byte(template))
	}
	return &printers.NamePrinter{}, nil
}

// printItems prints items, each by itself or all as a list.
func printItems(w io.Writer, p printers.ResourcePrinter, format string, list bool, items []commands.Item) error {
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, i := range items {
		if format == named {
			if err := p.PrintObj(about(i), w); err != nil {
				return err
			}
			continue
		}
		u, err := object(i)
		if err != nil {
			return err
		}
		all.Items = append(all.Items, *u)
	}
	if list && format != named {
		return p.PrintObj(all, w)
	}
	for k := range all.Items {
		if err := p.PrintObj(&all.Items[k], w); err != nil {
			return err
		}
	}
	return nil
}

// about returns the object of an item.
func about(i commands.Item) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: i.About.APIVersion, Kind: i.About.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: i.About.Namespace, Name: i.About.Name},
	}
}

// object returns an item's data as a Kubernetes object.
func object(i commands.Item) (*unstructured.Unstructured, error) {
	if u, is := i.Data.(*unstructured.Unstructured); is {
		return u, nil
	}
	text, err := json.Marshal(i.Data)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return nil, err
	}
	u.SetAPIVersion("idalloc.dev/v1")
	u.SetKind(i.Kind)
	if i.About.Name != "" {
		u.SetName(i.About.Name)
	}
	if i.About.Namespace != "" {
		u.SetNamespace(i.About.Namespace)
	}
	return u, nil
}
