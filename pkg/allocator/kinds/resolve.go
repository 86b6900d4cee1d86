package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup asks a cluster which kind a resource is. words are kubectl's other names of the kind.
type Lookup func(schema.GroupResource) (kind schema.GroupVersionKind, words []string, err error)

var errName = errors.New("write RESOURCE.GROUP, such as rollouts.argoproj.io")

// Resolve returns the further kind with a name such as "rollouts.argoproj.io". Errors: those of look, or the name is not that of a resource and its group.
func Resolve(look Lookup, name string) (Kind, error) {
	resource, group, whole := strings.Cut(name, ".")
	if !whole || resource == "" || group == "" {
		return Kind{}, fmt.Errorf("--kind %q: %w", name, errName)
	}
	kind, words, err := look(schema.GroupResource{Group: group, Resource: resource})
	if err != nil {
		return Kind{}, err
	}
	return Scaled(kind, resource, words...), nil
}

// Find returns k and the kinds with names such as "rollouts.argoproj.io". missing are those that the cluster does not have, or cannot report now. Errors: a
// name is not that of a resource and its group.
func (k Kinds) Find(mapper meta.RESTMapper, names ...string) (all Kinds, missing []string, err error) {
	look := func(of schema.GroupResource) (schema.GroupVersionKind, []string, error) {
		kind, err := mapper.KindFor(of.WithVersion(""))
		return kind, nil, err
	}
	for _, name := range names {
		found, err := Resolve(look, name)
		if errors.Is(err, errName) {
			return nil, nil, err
		}
		if err != nil {
			missing = append(missing, name)
		} else if _, known := k.Of(found.GroupKind()); !known {
			k = append(slices.Clip(k), found)
		}
	}
	return k, missing, nil
}
