package inject

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Pod returns the JSON of a new pod with what its labels ask for, or the same bytes if the pod already has it. The policies of config/assign and config/inject
// make the same changes. An empty image means DefaultImage. An error means that the pod cannot have what it asks for.
func Pod(object []byte, image string) ([]byte, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("the pod is not valid JSON: %w", err)
	}
	var root yaml.Node
	if err := root.Encode(fields); err != nil {
		return nil, fmt.Errorf("the pod: %w", err)
	}
	w := workload{object: &root, template: &root}
	changed, err := w.admit(image)
	if err != nil || !changed {
		return object, err
	}
	var result map[string]any
	if err := root.Decode(&result); err != nil {
		return nil, fmt.Errorf("the changed pod: %w", err)
	}
	return json.Marshal(result)
}

// admit completes a pod that is being created. It keeps what the pod already has under one of idalloc's names.
func (w *workload) admit(image string) (changed bool, err error) {
	if image == "" {
		image = DefaultImage
	}
	if value(w.template, "metadata", "labels", AssignLabel) == ByController {
		if changed, err = w.assign(image, true); err != nil {
			return false, err
		}
	}
	if value(w.template, "metadata", "labels", Label) != yes || field(descend(w.template, "metadata", "annotations"), Injected) != nil {
		return changed, nil
	}
	return w.inject(Options{Image: image, Warn: func(string) {}})
}
