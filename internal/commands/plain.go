package commands

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// Plain returns the formats of a program that prints data unchanged.
func Plain() Formats {
	return Formats{Names: []string{"json", "yaml"}, Printer: func(name, _ string) (Printer, error) {
		return map[string]Printer{"json": printJSON, "yaml": printYAML}[name], nil
	}}
}

func printJSON(w io.Writer, _ bool, items ...Item) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	for _, i := range items {
		if err := e.Encode(i.Data); err != nil {
			return err
		}
	}
	return nil
}

func printYAML(w io.Writer, _ bool, items ...Item) error {
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
