package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// firstRetry and lastRetry bound the delay until an owner is tried again.
	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
	// reconciles is how many owners are reconciled at a time. They share inFlight.
	reconciles = 8
	// pagesAtOnce is how many pages of lists are in memory at a time, for all owners together. A page may have 8 MiB.
	pagesAtOnce = 2
	// syncedWithin is how long a request may wait for the first lists.
	syncedWithin = 100 * time.Millisecond
	// syncWithin is how long the first lists may take.
	syncWithin = 2 * time.Minute
)

// watched returns the kinds that are watched as owners, without ReplicaSets, which are always watched.
func watched(known kinds.Kinds) (all []schema.GroupVersionKind) {
	for _, k := range known {
		if k.GroupVersionKind != replicaSets {
			all = append(all, k.GroupVersionKind)
		}
	}
	return all
}

// CacheOptions returns which objects are watched and which part of them is kept. No namespaces means all.
func CacheOptions(namespaces []string, known kinds.Kinds) (cache.Options, error) {
	there, wrong := labels.Parse(receipt.AssignLabel)
	ours, err := labels.Parse(fmt.Sprintf("%s in (%s,%s)", receipt.AssignLabel, receipt.ByController, receipt.ByAgent))
	if err = errors.Join(wrong, err); err != nil {
		return cache.Options{}, fmt.Errorf("label selector: %w", err)
	}
	o := cache.Options{
		ReaderFailOnMissingInformer: true, NewInformer: newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Label: ours, Transform: trimPod},
			metaOf(replicaSets): {Label: there, Transform: trimMeta},
		},
	}
	for _, gvk := range watched(known) {
		o.ByObject[metaOf(gvk)] = cache.ByObject{Transform: trimMeta}
	}
	if len(namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o, nil
}

// Setup adds the controller to a manager whose cache has CacheOptions, and its metrics to the registry. known and missing come from kinds.Find,
// and away from Served.
func Setup(
	ctx context.Context, mgr manager.Manager, config *rest.Config, known kinds.Kinds, missing, away []string, registry prometheus.Registerer, clk clock.Clock, log logr.Logger,
) error {
	s, err := store.New(config, clk)
	if err != nil {
		return err
	}
	s.Pages = make(chan struct{}, pagesAtOnce)
	counts := NewMetrics(clk.Now, cachedPods(ctx, mgr.GetCache()), func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	})
	if err := registry.Register(counts); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	x := &Reconciler{
		store: s, cache: mgr.GetCache(), server: pages{store: s}, writer: mgr.GetClient(), log: log, name: name, kinds: known, metrics: counts,
		slots: make(chan struct{}, inFlight), slow: make(chan struct{}, few), others: make(chan event.TypedGenericEvent[kinds.Ref], 1),
		told: expiring.NewExpiringWithClock(clk), memories: map[kinds.Ref]*memory{},
	}
	for _, o := range []client.Object{&corev1.Pod{}, metaOf(replicaSets)} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, o, index, indexed); err != nil {
			return fmt.Errorf("index of %T: %w", o, err)
		}
	}
	for _, gvk := range watched(known) { // so that their lists are complete before this replica is elected
		if _, err := mgr.GetCache().GetInformer(ctx, metaOf(gvk)); err != nil {
			return fmt.Errorf("watch of %s: %w", gvk.Kind, err)
		}
	}
	if len(missing)+len(away) > 0 {
		if err := mgr.Add(missed{x, missing, mgr.GetRESTMapper(), away, mgr.GetAPIReader()}); err != nil {
			return fmt.Errorf("what is missing: %w", err)
		}
	}
	return x.watch(mgr)
}

// cachedPods returns a function that lists the pods in the cache. It returns none until the first list is complete.
func cachedPods(ctx context.Context, from client.Reader) func() []corev1.Pod {
	return func() []corev1.Pod {
		ctx, cancel := context.WithTimeout(ctx, syncedWithin)
		defer cancel()
		var all corev1.PodList
		_ = from.List(ctx, &all, client.UnsafeDisableDeepCopy)
		return all.Items
	}
}

func (x *Reconciler) watch(mgr manager.Manager) error {
	from, changed := mgr.GetCache(), predicate.TypedFuncs[*metav1.PartialObjectMetadata]{UpdateFunc: changes}
	b := builder.TypedControllerManagedBy[kinds.Ref](mgr).Named("owner").
		WithOptions(controller.TypedOptions[kinds.Ref]{
			MaxConcurrentReconciles: reconciles, CacheSyncTimeout: syncWithin,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[kinds.Ref](firstRetry, lastRetry),
		}).
		WithLogConstructor(func(ref *kinds.Ref) logr.Logger {
			if ref == nil {
				return x.log
			}
			return x.log.WithValues("owner", ref.String(), "namespace", ref.Namespace)
		}).
		WatchesRawSource(source.TypedKind(from, &corev1.Pod{}, handler.TypedEventHandler[*corev1.Pod, kinds.Ref](x.podEvents()))).
		WatchesRawSource(source.TypedKind(from, metaOf(replicaSets), handler.TypedEnqueueRequestsFromMapFunc(x.sets), changed)).
		WatchesRawSource(source.TypedChannel(x.others, handler.TypedFuncs[kinds.Ref, kinds.Ref]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[kinds.Ref], q queue) { q.Add(e.Object) },
		}))
	for _, gvk := range watched(x.kinds) {
		b = b.WatchesRawSource(source.TypedKind(from, metaOf(gvk), handler.TypedEnqueueRequestsFromMapFunc(x.owners(gvk)), changed))
	}
	if err := b.Complete(x); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// Synced returns a check that fails until the caches have their first lists.
func Synced(from cache.Cache) func(*http.Request) error {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncedWithin)
		defer cancel()
		if !from.WaitForCacheSync(ctx) {
			return errors.New("the first lists are not there yet")
		}
		return nil
	}
}
