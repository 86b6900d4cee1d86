package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// patience is how long a permission may be missing. An API server that has just started refuses everything until it has read its roles.
const patience = 5 * time.Second

// Permitted returns a *request.ForbiddenError if RBAC does not let the controller list what it watches: its caches would retry for ever, and the controller would
// do nothing. It ignores other errors, because the caches retry after them. It blocks for up to patience.
func Permitted(ctx context.Context, server client.Reader, mapper meta.RESTMapper, known kinds.Kinds, namespaces []string, clk clock.Clock) error {
	end := clk.Now().Add(patience)
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, gvk := range append([]schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind(podKind), replicaSets}, watched(known)...) {
		for _, namespace := range namespaces {
			for {
				err := server.List(ctx, metaList(gvk), client.InNamespace(namespace), client.Limit(1))
				if !apierrors.IsForbidden(err) {
					break
				}
				if !clk.Now().Before(end) {
					return forbidden(mapper, gvk, namespace, err)
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-clk.After(time.Second):
				}
			}
		}
	}
	return nil
}

func forbidden(mapper meta.RESTMapper, gvk schema.GroupVersionKind, namespace string, cause error) error {
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("resource of %s: %w", gvk.Kind, err)
	}
	return &request.ForbiddenError{Verb: "list", Group: gvk.Group, Resource: mapping.Resource.Resource, Namespace: namespace, Err: cause}
}
