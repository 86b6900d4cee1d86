package inject

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// workload is an object with a pod template.
type workload struct {
	name             string // KIND/NAME
	object, template *yaml.Node
}

// find returns the workload in an object, and what its pods should get: the sidecar (BySidecar, or ByAgent), an id of the controller (ByController), or
// nothing. An error means that the workload asks for something that it cannot have.
func (i *injector) find(object *yaml.Node) (w workload, by string, err error) {
	kind := value(object, "kind")
	w = workload{name: kind + "/" + value(object, "metadata", "name"), object: object, template: templateOf(object, kind)}
	if w.template == nil || w.template.Kind != yaml.MappingNode {
		return w, "", nil
	}
	by, err = i.asked(w)
	if by == BySidecar && i.options.By == ByAgent {
		by = ByAgent
	}
	switch {
	case err != nil || by == "" && i.marked(w) || i.options.By != "" && by != "" && by != i.options.By:
		return w, "", err
	case by == "":
		if i.options.All && i.options.By == ByController && refuseAssigned(kind) == nil {
			return w, ByController, nil
		}
		if i.options.All && i.options.By != ByController && owner(value(object, "apiVersion"), kind) {
			return w, cmp.Or(i.options.By, BySidecar), nil
		}
		return w, "", nil
	case by == ByController:
		return w, by, refuseAssigned(kind)
	}
	return w, by, refuse(value(object, "apiVersion"), kind)
}

// templateOf returns the pod template of an object, or nil if it has none. That of a Pod is the Pod itself.
func templateOf(object *yaml.Node, kind string) *yaml.Node {
	switch kind {
	case "Pod":
		return object
	case "CronJob":
		return descend(object, "spec", "jobTemplate", "spec", "template")
	}
	return descend(object, "spec", "template")
}

// marked reports whether the template has one of the labels, with any value.
func (i *injector) marked(w workload) bool {
	labels := descend(w.template, "metadata", "labels")
	return field(labels, Label) != nil || field(labels, AssignLabel) != nil
}

// asked returns what the labels of the template ask for.
func (i *injector) asked(w workload) (by string, err error) {
	for _, label := range []struct{ key, asks, or string }{{Label, yes, "false"}, {AssignLabel, ByController, ByAgent}} {
		mark := descend(w.template, "metadata", "labels", label.key)
		if mark == nil {
			if elsewhere := misplaced(w.object, w.template, label.key, label.asks, ByAgent); elsewhere != "" {
				return "", fmt.Errorf("%s stands where it does nothing: make it a label of the pod template, with the value %q", label.key, elsewhere)
			}
			continue
		}
		switch {
		case mark.Value != label.asks && mark.Value != label.or && label.key == AssignLabel:
			return "", fmt.Errorf("label %s is %q: use %q or %q, or remove it", label.key, mark.Value, label.asks, label.or)
		case mark.Value != label.asks && mark.Value != label.or:
			return "", fmt.Errorf("label %s is %q: use %q or %q", label.key, mark.Value, label.asks, label.or)
		case mark.Value == ByAgent && by == BySidecar:
			by = ByAgent // without the sidecar, a container of the template runs idalloc
		case mark.Value == ByController:
			by = ByController // checkAssigned refuses both labels
		case mark.Value == yes:
			by = BySidecar
		}
	}
	return by, nil
}

// misplaced returns the value of a label that the template lacks but that is set on the workload or as an annotation, if the value is in asks.
func misplaced(object, template *yaml.Node, label string, asks ...string) string {
	for _, n := range []*yaml.Node{object, template} {
		for _, key := range []string{"labels", "annotations"} {
			if text := value(n, "metadata", key, label); slices.Contains(asks, text) {
				return text
			}
		}
	}
	return ""
}

// owner reports whether idalloc supports this kind of workload.
func owner(apiVersion, kind string) bool {
	_, known := kinds.BuiltIn().Ref(apiVersion, kind, "", "")
	return known
}

func refuse(apiVersion, kind string) error {
	switch {
	case owner(apiVersion, kind):
		return nil
	case kind == "Pod":
		return errors.New("a pod by itself has nothing to number it by: put it into a " + kinds.Any)
	case kind == "CronJob":
		return errors.New("each run of a CronJob is a Job with a name of its own, which no Role can name beforehand: take label " + Label + " out of its template")
	}
	return fmt.Errorf("idalloc gives ids to the pods of a "+kinds.Any+", and not to those of %s %s: take label %s out of its template", apiVersion, kind, Label)
}

// refuseAssigned explains why pods of a kind cannot wait for an id of the controller. Which kinds the controller knows depends on its flag --kind.
func refuseAssigned(kind string) error {
	switch kind {
	case "Pod":
		return errors.New("a pod by itself has nothing to number it by: put it into a " + kinds.Any)
	case "DaemonSet":
		return errors.New("each new node would change the count of all pods of a DaemonSet, so they get no ids: take label " + AssignLabel + " out of its template")
	}
	return nil
}
