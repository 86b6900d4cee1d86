package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// Propose writes next to the owner, if neither its spec nor its annotations changed since from was read. It returns the owner as written. Errors:
// those of request.Write, request.ErrNotKept, or request.ErrRefused.
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

// patchOwner patches an owner. If it returns an error and an owner with a UID, the patch was carried out.
func (s *Store) patchOwner(ctx context.Context, from Owner, body []byte) (Owner, error) {
	if from.Resource == "" {
		o, err := s.patchObject(ctx, from.Ref, body)
		if err != nil {
			return Owner{}, err
		}
		written, err := DecodeOwner(from.Ref, o, nil)
		written.UID = o.UID
		return written, err
	}
	meta, err := s.patchMetadata(ctx, targetOf(from.Ref), types.JSONPatchType, body)
	if err != nil {
		return Owner{}, err
	}
	return from.with(meta), nil
}

func (s *Store) patchObject(ctx context.Context, ref kinds.Ref, body []byte) (*wire.Object, error) {
	return request.Write(ctx, targetOf(ref), "patch", func(ctx context.Context) (*wire.Object, error) {
		o := &wire.Object{}
		return o, at(s.owners.Patch(types.JSONPatchType), ref).Name(ref.Name).
			Param("fieldManager", assignment.FieldManager).Body(body).Do(ctx).Into(o)
	})
}
