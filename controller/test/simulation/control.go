package simulation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/idalloc/idalloc/controller/internal/reconciler"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	api "github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Control is idalloc-controller as its command runs it: manager, caches, queue, election and reconciler. Only what serves HTTP and what asks the API
// server for its kinds is left out.
func Control(ctx context.Context, in world.Surroundings) error {
	in.Config.ContentType = runtime.ContentTypeJSON // the simulated server knows nothing else
	mapper := kindsOfCluster()
	known, missing, err := kinds.BuiltIn().Find(mapper)
	if err != nil {
		return err
	}
	caches, err := reconciler.CacheOptions(nil, known)
	if err != nil {
		return err
	}
	caches.NewInformer = func(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		return informer{toolscache.NewSharedIndexInformer(drained(lw), of, resync, by), ctx}
	}
	mgr, err := manager.New(in.Config, manager.Options{
		Scheme: scheme.Scheme, Logger: in.Log, Cache: caches, Controller: config.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		Metrics:        server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: in.Elects, LeaderElectionID: "idalloc-controller", LeaderElectionNamespace: api.Namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := reconciler.Setup(ctx, mgr, in.Config, known, missing, nil, prometheus.NewRegistry(), in.Clock, in.Log); err != nil {
		return err
	}
	ctx, cancel := ended(ctx)
	defer cancel()
	return mgr.Start(ctx)
}

// informer is one whose process ends at any moment.
type informer struct {
	toolscache.SharedIndexInformer

	ctx context.Context //nolint:containedctx // the process's
}

// HasSynced implements SharedInformer. A manager that is told to end before its caches have what is there waits for that, in a loop without a pause.
func (i informer) HasSynced() bool { return i.ctx.Err() != nil || i.SharedIndexInformer.HasSynced() }

// ended returns a context that ends a moment after ctx, when caches are not waited for any more.
func ended(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, cancel) })
	return out, func() { stop(); cancel() }
}

// drained has watches leave nothing behind when they are stopped. Those of controller-runtime have a goroutine that stays if an event comes at that
// moment, which the end of a process takes care of. Here the process ends, and the program does not.
func drained(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	l, ok := lw.(*toolscache.ListWatch)
	if !ok {
		return lw
	}
	start := l.WatchFuncWithContext
	l.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := start(ctx, o)
		if err != nil {
			return nil, err
		}
		return drain{w}, nil
	}
	return l
}

// drain takes what comes after it was stopped.
type drain struct{ watch.Interface }

// Stop implements watch.Interface.
func (d drain) Stop() {
	d.Interface.Stop()
	go func() {
		for range d.ResultChan() {
		}
	}()
}

// kindsOfCluster are the kinds that the simulated server has.
func kindsOfCluster() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for group, kinds := range map[schema.GroupVersion][]string{
		{Version: "v1"}: {"Pod"}, {Group: "apps", Version: "v1"}: {"Deployment", "StatefulSet", "ReplicaSet"}, {Group: "batch", Version: "v1"}: {"Job"},
		{Group: "policy", Version: "v1"}: {"Eviction"},
	} {
		for _, kind := range kinds {
			mapper.Add(group.WithKind(kind), meta.RESTScopeNamespace)
			mapper.Add(group.WithKind(kind+"List"), meta.RESTScopeNamespace) // as what discovers them does
		}
	}
	return mapper
}
