package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Timeout bounds every single request. It is shorter than the API server's own limit of a minute, so a lost answer costs only seconds.
const Timeout = 15 * time.Second

// Target is the object of a request, or a namespace's objects if Name is empty. Its methods build the request's errors.
type Target struct {
	GVR             schema.GroupVersionResource
	Namespace, Name string
}

// Send sends one request. Its errors are ErrGone, ErrNoAnswer, *ForbiddenError, or the server's own.
func Send[T any](ctx context.Context, t Target, verb string, send func(context.Context) (T, error)) (answer T, err error) {
	if err := t.check(verb); err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answer, err = send(ctx)
	return answer, t.wrap(verb, err)
}

// Write sends one request that changes something. Its errors are those of Send, plus ErrConflict and ErrAmbiguous.
func Write[T any](ctx context.Context, t Target, verb string, send func(context.Context) (T, error)) (T, error) {
	answer, err := Send(ctx, t, verb, send)
	switch {
	case errors.Is(err, ErrNoAnswer):
		err = fmt.Errorf("%w: %w", ErrAmbiguous, err)
	case apierrors.IsConflict(err):
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return answer, err
}
