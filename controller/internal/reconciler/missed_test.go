package reconciler

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// A kind was deleted that controller.kinds names. All other pods still get ids, and the kind is served when it is back.
func TestTheControllerRunsWithoutAKindAndTakesItUpWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := meta.NewDefaultRESTMapper(nil)
		names := []string{"rollouts.argoproj.io"}
		known, missing, err := kinds.BuiltIn().Find(mapper, names...)
		if err != nil || len(known) != 4 || !slices.Equal(missing, names) {
			t.Fatalf("kinds are %v, missing %v (%v)", known, missing, err)
		}
		x := &Reconciler{store: &store.Store{Clock: clock.RealClock{}}, log: logr.Discard(), metrics: NewMetrics(nil, nil, nil)}
		ended := make(chan error, 1)
		go func() { ended <- missed{Reconciler: x, names: missing, mapper: mapper}.Start(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		mapper.Add(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, meta.RESTScopeNamespace)
		if err := <-ended; !errors.Is(err, ErrKindCame) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestANameThatIsNoKindIsRefused(t *testing.T) {
	for _, name := range []string{"rollouts", ".argoproj.io", "rollouts."} {
		if _, _, err := kinds.BuiltIn().Find(meta.NewDefaultRESTMapper(nil), name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
