package store

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// newOwners returns a client that decodes owners as Objects.
func newOwners(config *rest.Config, client *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = objectCodec{}.negotiated()
	config.GroupVersion, config.APIPath = nil, "/" // each request sets its own path
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}

// at directs a request to owners of ref's kind in its namespace.
func at(request *rest.Request, ref kinds.Ref) *rest.Request {
	gvr := ref.GVR()
	return request.AbsPath("apis", gvr.Group, gvr.Version).Namespace(ref.Namespace).Resource(gvr.Resource)
}

func (s *Store) getObject(ctx context.Context, ref kinds.Ref) (*Object, error) {
	return request.Send(ctx, targetOf(ref), "get", func(ctx context.Context) (*Object, error) {
		o := &Object{}
		return o, at(s.owners.Get(), ref).Name(ref.Name).Do(ctx).Into(o)
	})
}

func (s *Store) patchObject(ctx context.Context, ref kinds.Ref, body []byte) (*Object, error) {
	return request.Write(ctx, targetOf(ref), "patch", func(ctx context.Context) (*Object, error) {
		o := &Object{}
		return o, at(s.owners.Patch(types.JSONPatchType), ref).Name(ref.Name).
			Param("fieldManager", assignment.FieldManager).Body(body).Do(ctx).Into(o)
	})
}

// MayFollow returns a *request.ForbiddenError if a watch of the owner is forbidden. Otherwise its errors are as of Get, but never request.ErrGone.
func (s *Store) MayFollow(ctx context.Context, ref kinds.Ref) error {
	_, err := request.Send(ctx, targetOf(ref), "list", func(ctx context.Context) (*Objects, error) {
		return s.ListObjects(ctx, ref, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()})
	})
	return err
}

// ListObjects lists the objects of ref's kind in its namespace. Only ctx bounds the request. Errors: the client's own.
func (s *Store) ListObjects(ctx context.Context, ref kinds.Ref, o metav1.ListOptions) (*Objects, error) {
	list := &Objects{}
	if err := at(s.owners.Get(), ref).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.SchemeGroupVersion).Do(ctx).Into(list); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchObjects watches the objects of ref's kind in its namespace until ctx ends or the caller stops the watch. Errors: the
// client's own.
func (s *Store) WatchObjects(ctx context.Context, ref kinds.Ref, o metav1.ListOptions) (apiwatch.Interface, error) {
	o.Watch = true
	return at(s.owners.Get(), ref).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.SchemeGroupVersion).Watch(ctx)
}
