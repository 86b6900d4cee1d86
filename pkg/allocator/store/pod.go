package store

import (
	"context"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// costOf returns the deletion cost for an id, or nil without one. Pods without an id get no cost, and pods with a high id a low one. So a
// scale-down first removes pods without an id, then the highest ids, and the other pods keep theirs.
func costOf(id *string) *string {
	if id == nil {
		return nil
	}
	n, err := strconv.Atoi(*id)
	if err != nil {
		return nil
	}
	cost := strconv.Itoa(math.MaxInt32 - n)
	return &cost
}

func lookup(m map[string]string, key string) *string {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// pageSize is the number of pods in a page of a list. client-go's own lists use the same number. A pod's metadata takes
// kilobytes, and idalloc needs little of it.
const pageSize = 500

// EachPod lists pods' metadata with a consistent read and calls do for each pod. It reads page by page, so that no more
// than one page is in memory. The first page shows a moment after the call, and the other pages show the same moment.
//
// If the server forgets that moment before the last page, the list begins again, in one piece. Then do gets pods again,
// and it may have got a pod that is gone. RequestTimeout bounds each page. Errors: *ForbiddenError, or another error that
// Temporary judges.
func (s *Store) EachPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*metav1.PartialObjectMetadata)) error {
	return eachPage(ctx, namespace, o, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Metadata.Resource(Pods).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.Continue, nil
	})
}

// EachFullPod is EachPod with whole pods.
func (s *Store) EachFullPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	return eachPage(ctx, namespace, o, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := s.Dynamic.Resource(Pods).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		return list.GetContinue(), nil
	})
}

// eachPage reads pages until there is no token for one more.
func eachPage(ctx context.Context, namespace string, o metav1.ListOptions, read func(context.Context, metav1.ListOptions) (next string, err error)) error {
	o.Limit, o.Continue = pageSize, ""
	for {
		next, err := request(ctx, target{gvr: Pods, namespace: namespace}, "list", func(ctx context.Context) (string, error) { return read(ctx, o) })
		switch {
		case apierrors.IsResourceExpired(err) && o.Continue != "":
			o.Limit, o.Continue = 0, ""
		case err != nil:
			return err
		case next == "":
			return nil
		default:
			o.Continue = next
		}
	}
}
