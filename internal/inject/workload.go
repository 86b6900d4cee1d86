package inject

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workload is an object with a pod template.
type workload struct {
	name             string // KIND/NAME
	object, template *yaml.Node
}

// find returns the workload that an object is, and whether it is to have the sidecar. An error means that it asks for one and
// cannot have it.
func (i *injector) find(object *yaml.Node) (w workload, asked bool, err error) {
	kind := value(object, "kind")
	w = workload{name: kind + "/" + value(object, "metadata", "name"), object: object, template: descend(object, "spec", "template")}
	switch kind {
	case "Pod":
		w.template = object
	case "CronJob":
		w.template = descend(object, "spec", "jobTemplate", "spec", "template")
	}
	if w.template == nil || w.template.Kind != yaml.MappingNode {
		return w, false, nil
	}
	mark := descend(w.template, "metadata", "labels", Label)
	if mark == nil {
		if misplaced(object, w.template) {
			return w, false, errors.New(Label + " stands where it does nothing: make it a label of the pod template, with the value \"true\"")
		}
		return w, i.options.All && owner(value(object, "apiVersion"), kind), nil
	}
	switch mark.Value {
	case yes:
	case "false":
		return w, false, nil
	default:
		return w, false, fmt.Errorf("label %s is %q: use \"true\" or \"false\"", Label, mark.Value)
	}
	return w, true, refuse(value(object, "apiVersion"), kind)
}

// misplaced tells whether the label is not in the template, but on the workload or an annotation.
func misplaced(object, template *yaml.Node) bool {
	for _, n := range []*yaml.Node{object, template} {
		for _, key := range []string{"labels", "annotations"} {
			if value(n, "metadata", key, Label) == yes {
				return true
			}
		}
	}
	return false
}

// owner tells whether objects of a kind can have an assignment, so that their pods can have ids.
func owner(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	switch kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return group == "apps"
	case "Job":
		return group == "batch"
	}
	return false
}

func refuse(apiVersion, kind string) error {
	switch {
	case owner(apiVersion, kind):
		return nil
	case kind == "Pod":
		return errors.New("a pod by itself has nothing to number it by: put it into a Deployment, StatefulSet, ReplicaSet or Job")
	case kind == "CronJob":
		return errors.New("each run of a CronJob is a Job with a name of its own, which no Role can name beforehand: take label " + Label + " out of its template")
	}
	return fmt.Errorf("idalloc gives ids to the pods of a Deployment, StatefulSet, ReplicaSet or Job, and not to those of %s %s: take label %s out of its template", apiVersion, kind, Label)
}
