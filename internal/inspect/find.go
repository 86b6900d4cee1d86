package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Kinds returns the kinds that can be owners.
func Kinds() (names []string) {
	for _, k := range kinds.BuiltIn() {
		names = append(names, k.Kind)
	}
	return names
}

// Workloads returns the workloads with annotations of idalloc, by namespace, kind and name. It reads the metadata of all workloads of these kinds, so it is for
// interactive use. A label would make that one small request, but users would forget it, and the policy lets pods write only idalloc's annotations. An empty
// namespace means all namespaces, and no kinds means all kinds. If one kind cannot be listed, it returns those of the others, and an error.
func Workloads(ctx context.Context, s *store.Store, namespace, selector string, kinds ...string) ([]kinds.Ref, error) {
	return list(ctx, s, namespace, selector, kinds, func(o metav1.Object) bool {
		for key := range o.GetAnnotations() {
			if strings.HasPrefix(key, "idalloc.dev/") {
				return true
			}
		}
		return false
	})
}

// Candidates returns the workloads that could use idalloc. Parameters and errors: as of Workloads.
func Candidates(ctx context.Context, s *store.Store, namespace string, kinds ...string) ([]kinds.Ref, error) {
	return list(ctx, s, namespace, "", kinds, func(metav1.Object) bool { return true })
}

func list(ctx context.Context, s *store.Store, namespace, selector string, names []string, shown func(metav1.Object) bool) ([]kinds.Ref, error) {
	if len(names) == 0 {
		names = Kinds()
	}
	var (
		found []kinds.Ref
		errs  []error
	)
	for _, kind := range names {
		of, err := kinds.ParseRef(kind+"/any", namespace)
		if err != nil {
			return nil, err
		}
		before := len(found)
		err = s.EachMetadata(ctx, of.GVR(), of.Namespace, metav1.ListOptions{LabelSelector: selector}, func() { found = found[:before] }, func(o *metav1.PartialObjectMetadata) {
			// A Deployment's ReplicaSets have copies of its annotations.
			if (!of.Is(kinds.ReplicaSet) || metav1.GetControllerOfNoCopy(o) == nil) && shown(o) {
				found = append(found, kinds.Ref{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: o.GetNamespace(), Name: o.GetName()})
			}
		})
		if apierrors.IsForbidden(err) {
			err = request.Forbidden("list", of.GVR(), of.Namespace, "", err)
		}
		if errs = append(errs, err); request.NoContact(err) {
			break // the other kinds would give the same error
		}
	}
	slices.SortFunc(found, func(a, b kinds.Ref) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return found, errors.Join(errs...)
}
