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

// Identity is one consistent moment: ID and Count were read together.
type Identity = identity.Identity

// Options configure Run, RunPartitions and Start. In a pod with the downward API, the zero value works.
type Options struct {
	// PodName and PodNamespace name this pod. The defaults are POD_NAME and POD_NAMESPACE from the environment.
	PodName, PodNamespace string
	// PodUID is this pod's UID. The default is POD_UID from the environment, if PodName is the one from there, too. It
	// matters if the pod is force-deleted: a container of it that starts later could take a new pod of the same
	// name, for example of a StatefulSet, for its own.
	PodUID string
	// Config says how to reach the API server. The default is the pod's service account, or outside of a pod kubectl's
	// rules.
	Config *rest.Config
	// Log receives what an operator should know: waiting, errors, changes of state. For the zero value, which is also
	// logr.Discard(), the default is slog's default handler. To discard the log, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Log logr.Logger
	// KeepOnCountChange is only for Run. It keeps its function running if only the count changes. By default, Run ends the function's
	// context and calls it again with the same id and the new count, because work that is split by an old count is split
	// wrongly. Work that uses only the id can keep running.
	KeepOnCountChange bool
	// Partitions has the process take part in the division of the workload's partitions. It is only for Start.
	Partitions bool
	// Stop is only for Start. It must block until the work has stopped, or until its context ends. It is called when Current is no longer assigned
	// or does not own the partitions any more. Calls for different partitions may run side by side. Until it returns nil, or calls
	// Stopping.Stopped, the slot, or the partitions, stay with this pod unless they are lost. After an error it is called again. If its
	// context ends first, it must return an error: the work may go on, and Current says with what.
	//
	// If Stop is set, the pod hands its slot over to a waiting pod of a newer revision, and partitions move while it lives. If it is
	// nil, the work must check Current before every step, so that it has stopped as soon as Current is not assigned. Then partitions
	// move only together with the id.
	Stop func(context.Context, Stopping) error
	// Changed is only for RunPartitions. It is called with the identity of this pod after each change, in one goroutine. It must not
	// block for long. A program is ready when the identity is assigned, and not only when there are partitions: with fewer partitions
	// than pods, a rollout would not end.
	Changed func(Identity)
	// Strategies are for RunPartitions, and for Start with Partitions: strategies of this program, by the name that the user writes to idalloc.dev/partition-strategy. All pods of the
	// workload must have the same. A pod that does not know the strategy in force keeps its partitions and moves none.
	Strategies map[string]placement.Strategy
	// FenceAfter turns on strict mode. The process loses its id by itself after this long without contact to the API
	// server, on a clock that also counts suspended time. No other pod gets the slot before that. Current compares with the
	// clock at each call. The context of a function of Run or RunPartitions ends, and the function must return within ten seconds. It is 0 for off, or 3 s to 1 h.
	FenceAfter time.Duration
	// Metrics counts what happens to this instance. Use one for each instance. To register it with Prometheus, make it with
	// collector.Register. Nil counts nothing.
	Metrics *metrics.Metrics
	// ReleaseTimeout bounds the release when Run or RunPartitions ends. The default is 10 s.
	ReleaseTimeout time.Duration
	// Clock is for tests. The default is the real clock.
	Clock clock.Clock
}

// Stopping says which work is to stop.
type Stopping struct {
	// All says that all work is to stop, because the pod gives its id away. Otherwise only that on Partitions is.
	All bool
	// Partitions are those on which the program may be working, and is not to any more.
	Partitions placement.Set
	// Stopped says that the work on some of Partitions has stopped, before Stop returns. Other pods may have these then, whatever becomes of the rest.
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
