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

// Served divides namespaces into those in which the controller may list pods, and others. With a deleted namespace its Role is gone, and the controller cannot
// tell whether only the Role is. If it may do so in none, it returns all as served, and Permitted explains what is missing. It blocks for up to patience.
func Served(ctx context.Context, server client.Reader, namespaces []string, clk clock.Clock) (served, away []string, err error) {
	for end := clk.Now().Add(patience); ; {
		served, away = nil, nil
		for _, namespace := range namespaces {
			if apierrors.IsForbidden(onePod(ctx, server, namespace)) {
				away = append(away, namespace)
			} else {
				served = append(served, namespace)
			}
		}
		switch {
		case len(away) > 0 && clk.Now().Before(end):
		case len(served) == 0:
			return namespaces, nil, nil
		default:
			return served, away, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-clk.After(time.Second):
		}
	}
}

// onePod returns the error of a list of pods of at most one.
func onePod(ctx context.Context, server client.Reader, namespace string) error {
	return server.List(ctx, metaList(corev1.SchemeGroupVersion.WithKind(podKind)), client.InNamespace(namespace), client.Limit(1))
}

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
