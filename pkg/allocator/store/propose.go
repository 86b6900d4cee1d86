package store

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Propose writes next to the owner, if neither its spec nor its annotations changed since from was read. It returns the owner as written. Errors:
// request.ErrConflict, request.ErrAmbiguous, request.ErrNotKept, request.ErrRefused, request.ErrGone, *request.ForbiddenError, or the server's own.
func (s *Store) Propose(ctx context.Context, from Owner, next assignment.State) (Owner, error) {
	set := next.Encode()
	body, err := proposalPatch(from, set)
	if err != nil {
		return Owner{}, err
	}
	written, err := s.patchOwner(ctx, from, body)
	if err != nil && written.UID == "" {
		return Owner{}, s.judge(ctx, targetOf(from.Ref), err, from.differs)
	}
	if err == nil {
		err = request.Kept(set, written.Record.State.Encode(), fmt.Sprintf("%s in namespace %s", from.Ref, from.Namespace))
	}
	return written, err
}

// proposalPatch sets the annotations. For a kind whose generation counts annotations, a status update does not make the patch fail.
func proposalPatch(from Owner, set map[string]string) ([]byte, error) {
	version := test("/metadata/resourceVersion", from.ResourceVersion)
	if from.Of().Versioned {
		version = test("/metadata/generation", from.Generation)
	}
	ops := []operation{test("/metadata/uid", from.UID), version}
	if from.Annotations == nil {
		return encode(append(ops, test("/metadata/annotations", nil), add("/metadata/annotations", set)))
	}
	for _, key := range assignment.Keys() {
		value, wanted := set[key]
		old, there := from.Annotations[key]
		switch {
		case wanted && (!there || value != old):
			ops = append(ops, add(pointer("metadata", annotationsField, key), value))
		case !wanted && there:
			ops = append(ops, remove(pointer("metadata", annotationsField, key)))
		}
	}
	return encode(ops)
}

// judge distinguishes a conflict from a real refusal, because the server answers 422 both to a failed test of a JSON Patch and to an invalid object.
// differs returns an error if the object no longer matches the patch's tests.
func (s *Store) judge(ctx context.Context, t request.Target, refused error, differs func(now *metav1.PartialObjectMetadata) error) error {
	if !apierrors.IsInvalid(refused) {
		return request.AsRefused(refused)
	}
	now, err := s.getMetadata(ctx, t)
	switch {
	case errors.Is(err, request.ErrGone):
		return fmt.Errorf("%w: %w", request.ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", request.ErrConflict, err) // the cause is unknown; after a conflict the caller reads again anyway
	}
	if err := differs(now); err != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	return request.AsRefused(refused)
}

// differs returns request.ErrConflict if the patch that Propose made for o no longer applies.
func (o Owner) differs(now *metav1.PartialObjectMetadata) error {
	moved := now.ResourceVersion != o.ResourceVersion
	if o.Of().Versioned {
		moved = now.Generation != o.Generation
	}
	if moved || now.UID != o.UID || (now.Annotations == nil) != (o.Annotations == nil) {
		return request.ErrConflict
	}
	return nil
}
