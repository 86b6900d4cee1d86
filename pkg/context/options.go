package context

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/metrics"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Identity is one consistent moment: ID and Count were read together.
type Identity = identity.Identity

// Options configure Run and Start. In a pod with the downward API, the zero value works.
type Options struct {
	// PodName and PodNamespace name this pod. The defaults are POD_NAME and POD_NAMESPACE from the environment.
	PodName, PodNamespace string
	// PodUID is this pod's UID. The default is POD_UID from the environment, if PodName is the one from there, too. It
	// matters if somebody force-deletes the pod: a container of it that starts later could take a new pod of the same
	// name, for example of a StatefulSet, for its own.
	PodUID string
	// Config says how to reach the API server. The default is the pod's service account, or outside of a pod kubectl's
	// rules.
	Config *rest.Config
	// Log receives what an operator should know: waiting, errors, changes of state. For the zero value, which is also
	// logr.Discard(), the default is slog's default handler. To discard the log, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Log logr.Logger
	// KeepOnCountChange keeps Run's function running if only the count changes. By default, Run ends the function's
	// context and calls it again with the same id and the new count, because work that is split by an old count is split
	// wrongly. Work that uses only the id can keep running.
	KeepOnCountChange bool
	// Stopped is only for Start. It must block until the work under the id has stopped, or until its context ends. It is
	// called when Current is no longer assigned, and the slot stays with this pod until it returns nil. After an error
	// it is called again.
	//
	// If Stopped is set, the pod hands its slot over to a waiting pod of a newer revision. If it is nil, the work must
	// check Current before every step, so that it has stopped as soon as Current is not assigned. Run sets its own.
	Stopped func(context.Context) error
	// FenceAfter turns on strict mode. The process loses its id by itself after this long without contact to the API
	// server, on a clock that also counts suspended time. Nobody gets the slot before that. Current compares with the
	// clock at each call. The context of Run's function ends, and the function must return within ten seconds
	// (assignment.StopGrace). It is 0 for off, or 3 s to 1 h.
	FenceAfter time.Duration
	// Metrics counts what happens to this instance. Use one for each instance. To register it with Prometheus, make it with
	// collector.Register. Nil counts nothing.
	Metrics *metrics.Metrics
	// Partitions has the process work on partitions. Package partition sets it; a program need not.
	Partitions *Partitions
	// ReleaseTimeout bounds the release when Run ends. The default is 10 s.
	ReleaseTimeout time.Duration
	// Clock is for tests. The default is the real clock.
	Clock clock.Clock
}

// Partitions is what package partition needs to know. It may change with any version.
type Partitions struct {
	// Publish is called with each identity after Current has begun to return it. When it returns, nobody begins work that the identity does
	// not name.
	Publish func(Identity)
	// Stop, HandsOver, Keeps and Strategies are those of allocator.Options.
	Stop       func(context.Context, allocator.Stop) error
	HandsOver  bool
	Keeps      bool
	Strategies map[string]placement.Strategy
	// InProcess says that the work ends with this process, however the process ends.
	InProcess bool
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.PodName == "" || o.PodName == os.Getenv("POD_NAME") {
		o.PodUID = cmp.Or(o.PodUID, os.Getenv("POD_UID"))
	}
	o.PodName = cmp.Or(o.PodName, os.Getenv("POD_NAME"))
	o.PodNamespace = cmp.Or(o.PodNamespace, os.Getenv("POD_NAMESPACE"))
	if o.PodName == "" || o.PodNamespace == "" {
		return o, errors.New("idalloc: this pod's name is not known: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)")
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.FromSlogHandler(slog.Default().Handler())
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.ReleaseTimeout = cmp.Or(o.ReleaseTimeout, 10*time.Second)
	if o.Config == nil {
		config, _, err := connect.Config("", &clientcmd.ConfigOverrides{})
		if err != nil {
			return o, err
		}
		o.Config = config
	}
	return o, nil
}

func (o Options) store() (*store.Store, error) {
	return store.New(o.Config, o.Clock)
}

// work adds to the allocator's options how work is stopped. inProcess says that the work ends with this process, however the process ends:
// otherwise an earlier process of the pod may have left some, and nobody knows under which id.
func (o Options) work(to *allocator.Options, inProcess bool) {
	if p := o.Partitions; p != nil {
		to.Divides, to.Stop, to.HandsOver, to.Keeps, to.Strategies = true, p.Stop, p.HandsOver, p.Keeps, p.Strategies
		inProcess = p.InProcess
	} else if o.Stopped != nil {
		to.HandsOver = true
		to.Stop = func(ctx context.Context, _ allocator.Stop) error { return o.Stopped(ctx) }
	}
	if !inProcess {
		to.Left = func(string) Identity { return Identity{} }
	}
}
