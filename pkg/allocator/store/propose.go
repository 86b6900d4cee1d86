package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// ErrNotKept means that the API server accepted a write and does not have what was written. Something between changes it: an admission webhook,
// perhaps.
var ErrNotKept = errors.New("idalloc: the API server accepted the write, and something changed what was written")

// Propose makes next what the owner proposes, if neither its spec nor its annotations changed since from was read. It returns the owner as
// written. Errors: ErrConflict, ErrAmbiguous, ErrNotKept, ErrGone, *ForbiddenError, or the server's own.
func (s *Store) Propose(ctx context.Context, from Owner, next assignment.State) (Owner, error) {
	t := target{from.GVR(), from.Namespace, from.Name}
	if err := t.check("patch"); err != nil {
		return Owner{}, err
	}
	set := next.Encode()
	body, err := proposalPatch(from, set)
	if err != nil {
		return Owner{}, err
	}
	rctx, cancel := requestContext(ctx)
	defer cancel()
	o, err := s.patchObject(rctx, from.Ref, body)
	switch {
	case err == nil:
		written, err := DecodeOwner(from.Ref, o, nil)
		if err == nil && !maps.Equal(written.Record.State.Encode(), set) {
			err = fmt.Errorf("%w: annotations of %s in namespace %s", ErrNotKept, from.Ref, from.Namespace)
		}
		return written, err
	case t.unanswered(err):
		return Owner{}, fmt.Errorf("%w: %w", ErrAmbiguous, t.wrap("patch", err))
	case apierrors.IsConflict(err):
		return Owner{}, fmt.Errorf("%w: %w", ErrConflict, t.wrap("patch", err))
	case apierrors.IsInvalid(err):
		return Owner{}, s.judge(ctx, from, t.wrap("patch", err))
	}
	return Owner{}, t.wrap("patch", err)
}

// proposalPatch sets the annotations. A status update does not change what it tests on a kind whose generation counts annotations.
func proposalPatch(from Owner, set map[string]string) ([]byte, error) {
	ops := []any{operation{Op: opTest, Path: "/metadata/uid", Value: from.UID}}
	if kinds[from.Kind].versioned {
		ops = append(ops, operation{Op: opTest, Path: "/metadata/generation", Value: from.Generation})
	} else {
		ops = append(ops, operation{Op: opTest, Path: "/metadata/resourceVersion", Value: from.ResourceVersion})
	}
	if from.Annotations == nil {
		return encode(append(ops, absent("/metadata/annotations"), operation{Op: opAdd, Path: "/metadata/annotations", Value: set}))
	}
	for _, key := range assignment.Keys() {
		value, wanted := set[key]
		old, there := from.Annotations[key]
		switch {
		case wanted && (!there || value != old):
			ops = append(ops, operation{Op: opAdd, Path: pointer("metadata", annotationsField, key), Value: value})
		case !wanted && there:
			ops = append(ops, operation{Op: opRemove, Path: pointer("metadata", annotationsField, key)})
		}
	}
	return encode(ops)
}

// judge tells a conflict from a real refusal: the server answers 422 both to a failed test of a JSON Patch and to an invalid object.
func (s *Store) judge(ctx context.Context, from Owner, refused error) error {
	now, err := s.Get(ctx, from.Ref)
	switch {
	case errors.Is(err, ErrGone):
		return fmt.Errorf("%w: %w", ErrGone, refused)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConflict, err) // nobody knows; after a conflict the caller reads again anyway
	case now.UID != from.UID || now.version() != from.version() || (now.Annotations == nil) != (from.Annotations == nil):
		return ErrConflict
	}
	return refused
}

// version is what a write tests: the generation on a kind whose generation counts annotations, so that a status update does not get in the way;
// else the resourceVersion.
func (o Owner) version() string {
	if kinds[o.Kind].versioned {
		return strconv.FormatInt(o.Generation, 10)
	}
	return o.ResourceVersion
}
