package reconciler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// ownerMeta returns the metadata of an owner from the cache.
func (x *Reconciler) ownerMeta(ctx context.Context, ref kinds.Ref) (*metav1.PartialObjectMetadata, error) {
	o := metaOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	return o, x.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o, client.UnsafeDisableDeepCopy)
}

// listCached lists the objects in the cache with this value of index.
func (x *Reconciler) listCached(ctx context.Context, list client.ObjectList, namespace, value string, more ...client.ListOption) error {
	err := x.cache.List(ctx, list, append(more, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	return nil
}
