package reconciler

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
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

// A tenant's namespace was deleted, and the Role in it. All other namespaces still get ids, and this one is served when it is back.
func TestTheControllerRunsWithoutANamespaceAndTakesItUpWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			server            refuses
			all, served, away []string
		}{
			{refuses{kind: podKind}, []string{"market", "shop"}, []string{"market"}, []string{"shop"}},
			{refuses{kind: podKind, until: time.Now().Add(patience)}, []string{"market", "shop"}, []string{"market", "shop"}, nil},
			{refuses{kind: podKind}, []string{"shop"}, []string{"shop"}, nil},
			{refuses{kind: podKind}, nil, nil, nil},
		} {
			served, away, err := Served(t.Context(), tc.server, tc.all, clock.RealClock{})
			if err != nil || !slices.Equal(served, tc.served) || !slices.Equal(away, tc.away) {
				t.Errorf("of %v it serves %v and waits for %v (%v)", tc.all, served, away, err)
			}
		}
		begun, m := time.Now(), NewMetrics(nil, nil, nil)
		x := &Reconciler{store: &store.Store{Clock: clock.RealClock{}}, log: logr.Discard(), metrics: m}
		err := missed{Reconciler: x, away: []string{"shop"}, server: refuses{kind: podKind, until: begun.Add(time.Minute)}}.Start(t.Context())
		if took := time.Since(begun); !errors.Is(err, ErrNamespaceCame) || took < time.Minute || took > 2*time.Minute {
			t.Errorf("after %s it ended with %v", took, err)
		}
		if !m.away.DeleteLabelValues("shop") {
			t.Error("no metric names the namespace")
		}
	})
}
