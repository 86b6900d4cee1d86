package inject

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Label is the label of a pod template that asks for the sidecar. Its value is "true".
const Label = "idalloc.dev/inject"

// Injected is the annotation of a template with a sidecar from this package, and of a pod with a sidecar from this package or from the policy.
const Injected = "idalloc.dev/injected"

// DefaultImage is the sidecar's image if neither Options nor the template names one.
const DefaultImage = "ghcr.io/idalloc/idalloc:v0.1.0"

const yes = "true"

// BySidecar has a sidecar of the pod claim the id.
const BySidecar = "sidecar"

// Options configures Stream. The zero value is ready to use.
type Options struct {
	// All adds the sidecar to all workloads, including those whose templates lack the label. A template with another value of the label stays as it is.
	All bool
	// By restricts Stream to workloads that ask for this way: BySidecar, ByAgent or ByController. With All, other workloads also get it. If By is empty, Stream
	// handles every way, and All adds the sidecar. With ByAgent, the controller also plans for workloads that ask only for the sidecar.
	By string
	// Image replaces DefaultImage.
	Image string
	// Warn is called for each workload that will have trouble with its sidecar. The sentence begins with KIND/NAME. If Warn is nil, warnings are dropped.
	Warn func(sentence string)
}

// Stream adds the sidecar, or what an id of the controller needs, to all workloads in a stream of YAML or JSON documents that ask for it. It also returns the
// names of these workloads, as KIND/NAME. The error joins one error for each workload that cannot have the sidecar.
func Stream(stream string, o Options) (result string, workloads []string, err error) {
	var b strings.Builder
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Image == "" {
		o.Image = DefaultImage
	}
	i := injector{options: o}
	for _, d := range split(stream) {
		text, err := i.document(d.body)
		if err != nil {
			i.errs = append(i.errs, err)
		}
		if text != d.body && !strings.HasSuffix(d.separator, "\n") && d.separator != "" {
			d.separator += "\n" // the document began on this line
		}
		b.WriteString(d.separator + text)
	}
	if err := errors.Join(i.errs...); err != nil {
		return "", nil, err
	}
	return b.String(), i.workloads, nil
}

type injector struct {
	options   Options
	workloads []string
	errs      []error
}

// document returns the document with the sidecar added, or the same text.
func (i *injector) document(text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", fmt.Errorf("a document is not valid YAML: %w: repair it, or leave it out", err)
	}
	if root.Kind != yaml.DocumentNode || root.Content[0].Kind != yaml.MappingNode {
		return text, nil
	}
	expanded, err := expand(&root)
	if err != nil {
		return "", err
	}
	if !i.object(expanded.Content[0]) {
		return text, nil
	}
	return styleOf(&root).encode(expanded)
}

// object adds the sidecar to an object, or to the objects of a list, and reports whether anything changed.
func (i *injector) object(object *yaml.Node) (changed bool) {
	if items := field(object, "items"); items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			changed = i.object(item) || changed
		}
		return changed
	}
	w, by, err := i.find(object)
	switch {
	case err != nil:
	case by == ByController:
		changed, err = w.assign(i.options.Image, false)
	case by == ByAgent:
		changed, err = w.injectAgent(i.options)
	case by == BySidecar:
		changed, err = w.inject(i.options)
	}
	switch {
	case err != nil:
		i.errs = append(i.errs, fmt.Errorf("%s: %w", w.name, err))
	case by != "":
		i.workloads = append(i.workloads, w.name)
	}
	return changed
}
