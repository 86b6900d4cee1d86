package reconciler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Kinds are the kinds of owners, by group and kind. Those that are not built in have the name of their resource.
type Kinds map[schema.GroupVersionKind]string

// KindsOf returns the kinds that everybody has, and those with these names, such as "rollouts.argoproj.io". missing are those that the cluster does not have,
// or that it cannot tell about now. Errors: the name is not one of a resource and its group.
func KindsOf(mapper meta.RESTMapper, names []string) (k Kinds, missing []string, err error) {
	k = Kinds{
		{Group: "apps", Version: "v1", Kind: store.Deployment}: "", {Group: "apps", Version: "v1", Kind: store.StatefulSet}: "",
		{Group: "batch", Version: "v1", Kind: store.Job}: "", replicaSets: "",
	}
	for _, name := range names {
		resource, group, whole := strings.Cut(name, ".")
		if !whole || resource == "" || group == "" {
			return nil, nil, fmt.Errorf("--kind %q: write RESOURCE.GROUP, such as rollouts.argoproj.io", name)
		}
		gvk, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
		if err != nil {
			missing = append(missing, name)
			continue
		}
		if _, builtIn := k[gvk]; !builtIn {
			k[gvk] = resource
		}
	}
	return k, missing, nil
}

// ref returns the owner of this kind. known is false for other kinds. Versions of a kind are one kind.
func (k Kinds) ref(apiVersion, kind, namespace, name string) (ref store.Ref, known bool) {
	group := schema.FromAPIVersionAndKind(apiVersion, kind).Group
	for gvk, resource := range k {
		if gvk.Group == group && gvk.Kind == kind {
			return store.Ref{APIVersion: gvk.GroupVersion().String(), Kind: kind, Namespace: namespace, Name: name, Resource: resource}, true
		}
	}
	return store.Ref{}, false
}

// owners are the kinds that are watched as owners.
func (k Kinds) owners() (all []schema.GroupVersionKind) {
	for gvk := range k {
		if gvk != replicaSets {
			all = append(all, gvk)
		}
	}
	return all
}

// parse returns the owner that a receipt names.
func (k Kinds) parse(owner, namespace string) (ref store.Ref, known bool) {
	_, name, _ := strings.Cut(owner, "/")
	for gvk := range k {
		if ref, known := k.ref(gvk.GroupVersion().String(), gvk.Kind, namespace, name); known && ref.String() == owner {
			return ref, true
		}
	}
	return store.Ref{}, false
}
