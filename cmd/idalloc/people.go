package main

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/people"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// program returns the program for commands that have nothing to do with a pod.
func (g *global) program() people.Program {
	connect := func() (*store.Store, string, error) { return g.connect(0) }
	return people.Program{Name: "idalloc", Connect: connect, Log: g.log.Logger, Formats: formats}
}

// formats are those of the contract.
func formats(command string) people.Formats {
	names := map[string][]string{"get": {"table", "wide", "json", "yaml"}, "verify": {"table", "json"}}[command]
	return people.Formats{Names: names, Printer: func(name, _ string) (people.Printer, error) {
		return map[string]people.Printer{"json": printJSON, "yaml": printYAML}[name], nil
	}}
}

func printJSON(w io.Writer, _ bool, items ...people.Item) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	for _, i := range items {
		if err := e.Encode(i.Data); err != nil {
			return err
		}
	}
	return nil
}

func printYAML(w io.Writer, _ bool, items ...people.Item) error {
	for _, i := range items {
		b, err := yaml.Marshal(i.Data)
		if err != nil {
			return err
		}
		if _, err := w.Write(append([]byte("---\n"), b...)); err != nil {
			return err
		}
	}
	return nil
}
