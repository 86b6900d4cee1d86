package inject

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Label is the label of a pod template that asks for the sidecar, with the value "true".
const Label = "idalloc.dev/inject"

// Injected is the annotation of a template that has the sidecar from this package, and of a pod that has it from either way.
const Injected = "idalloc.dev/injected"

// DefaultImage is the sidecar's image if neither Options nor the template name one.
const DefaultImage = "ghcr.io/idalloc/idalloc:v0.1.0"

const yes = "true"

// BySidecar is the way in which a sidecar of the pod gets its id.
const BySidecar = "sidecar"

// Options configures Stream. The zero value is ready to use.
type Options struct {
	// All adds the sidecar to all workloads, also to those whose templates lack the label. A template with another value of
	// the label stays as it is.
	All bool
	// By restricts Stream to the workloads that ask for this way: BySidecar, ByAgent or ByController. All adds this way. Empty is all of them,
	// and the sidecar with All. ByAgent also has the controller plan for workloads that ask for the sidecar alone.
	By string
	// Image replaces DefaultImage.
	Image string
	// Warn is told of a workload that gets the sidecar and will be in trouble with it, as a sentence that begins with KIND/NAME.
	// Nil drops them.
	Warn func(sentence string)
}

// Stream returns a stream of YAML or JSON documents in which all workloads that ask for it have the sidecar, or what an id of the controller
// needs, and the names of these workloads as KIND/NAME. Of several errors it returns all, one for each workload that cannot have the sidecar.
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
			d.separator += "\n" // the document began in this line
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

// document returns the text of a document with the sidecar, or the same text.
func (i *injector) document(text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", fmt.Errorf("a document is no YAML: %w: repair it, or leave it out", err)
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

// object adds the sidecar to an object, or to those of a list, and tells whether anything has changed.
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
