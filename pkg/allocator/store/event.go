package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Tell writes an Event to the API server. Only the first Event of each minute with the same object, reason and detail is kept, regardless of the sender: a
// hundred pods that notice the same thing do not write a hundred Events. Tell returns nil if that Event already exists. It blocks until the server has
// answered. Errors: *request.ForbiddenError, or the server's own.
func (s *Store) Tell(ctx context.Context, e kubeevent.Event) error {
	_, err := request.Send(ctx, request.Target{GVR: kubeevent.Resource, Namespace: e.Namespace}, "create", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(kubeevent.Resource).Namespace(e.Namespace).Create(ctx, e.Object(s.Clock.Now()), metav1.CreateOptions{FieldManager: assignment.FieldManager})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
