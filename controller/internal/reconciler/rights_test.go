package reconciler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// refuses is an API server that refuses to list a kind until a time. A zero time has no end.
type refuses struct {
	client.Reader
	kind  string
	until time.Time
}

func (r refuses) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, o := list.GetObjectKind().GroupVersionKind(), (&client.ListOptions{}).ApplyOptions(options)
	if gvk.Kind != r.kind+"List" || o.Namespace != "shop" || !r.until.IsZero() && !time.Now().Before(r.until) {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group}, "", errors.New("no role"))
}

func permitted(t *testing.T, server client.Reader) error {
	t.Helper()
	jobs := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: kinds.Job}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(jobs, meta.RESTScopeNamespace)
	known, _, err := kinds.BuiltIn().Find(mapper)
	if err != nil {
		t.Fatal(err)
	}
	return Permitted(t.Context(), server, mapper, known, []string{"market", "shop"}, clock.RealClock{})
}

func TestARightThatIsMissingEndsTheControllerAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing *request.ForbiddenError
		err := permitted(t, refuses{kind: kinds.Job})
		if !errors.As(err, &missing) || missing.Verb != "list" || missing.Resource != "jobs" || missing.Group != "batch" || missing.Namespace != "shop" {
			t.Errorf("error is %v", err)
		}
	})
}

func TestAnAPIServerMayNeedTimeToReadItsRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := permitted(t, refuses{kind: podKind, until: time.Now().Add(patience)}); err != nil {
			t.Errorf("error is %v", err)
		}
	})
}
