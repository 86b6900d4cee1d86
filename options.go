package idalloc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/metrics"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Identity is one consistent state: ID and Count were read together.
type Identity = identity.Identity

// Options configure Run, RunPartitions and Start. In a pod with the downward API, the zero value works.
type Options struct {
	// PodName and PodNamespace name this pod. The defaults are POD_NAME and POD_NAMESPACE from the environment.
	PodName, PodNamespace string
	// PodUID is this pod's UID. The default is POD_UID from the environment, if PodName also comes from there. It matters if the pod is force-deleted: a
	// container of it that starts later could mistake a new pod of the same name, for example of a StatefulSet, for its own.
	PodUID string
	// Config is the connection to the API server. The default is the pod's service account, or outside of a pod kubectl's rules.
	Config *rest.Config
	// Log receives what an operator should know: waiting, errors, changes of state. For the zero value, which is also logr.Discard(), the default is slog's
	// default handler. To discard the log, use logr.FromSlogHandler(slog.DiscardHandler).
	Log logr.Logger
	// KeepOnCountChange is only for Run. It keeps Run's function running if only the count changes. By default, Run ends the function's context and calls
	// it again with the same id and the new count, because work that is split by an old count is split wrongly. Work that uses only the id can keep
	// running.
	KeepOnCountChange bool
	// Partitions makes the process share in the workload's partitions. It is only for Start.
	Partitions bool
	// Stop is only for Start. It must block until the work has stopped, or until its context ends. It is called when Current is no longer assigned or no
	// longer owns the partitions. Calls for different partitions may run concurrently. Until it returns nil, or calls Stopping.Stopped, the slot, or the
	// partitions, stay with this pod unless they are lost. After an error it is called again. If its context ends first, it must return an error: the work
	// may continue on what Current has.
	//
	// If Stop is set, the pod hands its slot over to a waiting pod of a newer revision, and partitions move while the pod lives. If it is nil, the work
	// must check Current before every step, so that it has stopped as soon as Current is not assigned. Then partitions move only together with the id.
	Stop func(context.Context, Stopping) error
	// Changed is only for RunPartitions. It is called with the identity of this pod after each change, in one goroutine. It must not block for long. Report
	// the program as ready when the identity is assigned, even without partitions: otherwise, with fewer partitions than pods, a rollout would not end.
	Changed func(Identity)
	// Strategies are for RunPartitions, and for Start with Partitions: strategies of this program, by the name that the user writes to
	// idalloc.dev/partition-strategy. All pods of the workload must have the same strategies. A pod that does not know the strategy in force keeps its
	// partitions and moves none.
	Strategies map[string]placement.Strategy
	// FenceAfter turns on strict mode: after this long without contact to the API server, the process loses its id by itself, on a clock that also counts
	// suspended time. No other pod gets the slot before that. Current compares the deadline with the clock at each call. The context of a function of Run
	// or RunPartitions ends, and the function must return within ten seconds. It is 0 for off, or 3 s to 1 h.
	FenceAfter time.Duration
	// Metrics counts what happens to this instance. Use a separate one for each instance. To register it with Prometheus, make it with collector.Register.
	// Nil counts nothing.
	Metrics *metrics.Metrics
	// ReleaseTimeout bounds the release when Run or RunPartitions ends. The default is 10 s.
	ReleaseTimeout time.Duration
	// Clock is for tests. The default is the real clock.
	Clock clock.Clock
}

// Stopping describes the work to stop.
type Stopping struct {
	// All: all work must stop, because the pod gives its id away. Otherwise only the work on Partitions must stop.
	All bool
	// Partitions are those on which the program may be working, and must stop.
	Partitions placement.Set
	// Call Stopped when the work on some of Partitions has stopped before Stop returns. Other pods can then have these, even while the rest continues.
	Stopped func(placement.Set)
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.PodName == "" || o.PodName == os.Getenv("POD_NAME") {
		o.PodUID = cmp.Or(o.PodUID, os.Getenv("POD_UID"))
	}
	o.PodName = cmp.Or(o.PodName, os.Getenv("POD_NAME"))
	o.PodNamespace = cmp.Or(o.PodNamespace, os.Getenv("POD_NAMESPACE"))
	if o.PodName == "" || o.PodNamespace == "" {
		return o, errors.New("idalloc: the name or namespace of this pod is missing: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)")
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.FromSlogHandler(slog.Default().Handler())
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.ReleaseTimeout = cmp.Or(o.ReleaseTimeout, 10*time.Second)
	if o.Config == nil {
		config, _, err := new(connect.Flags).Config()
		if err != nil {
			return o, err
		}
		o.Config = config
	}
	return o, nil
}
