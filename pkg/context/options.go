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
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Identity is one consistent moment: ID and Count were read together.
type Identity = identity.Identity

// Options configure Run and Start. The zero value is right in a pod with the downward API.
type Options struct {
	// PodName and PodNamespace name this pod; POD_NAME and POD_NAMESPACE if empty.
	PodName, PodNamespace string
	// PodUID is this pod's UID, POD_UID if empty. With it a container that starts after its pod was force-deleted
	// does not take a successor of the same name, as a StatefulSet makes it, for its own pod.
	PodUID string
	// Config reaches the API server; the pod's service account or kubectl's rules if nil.
	Config *rest.Config
	// AnnotationKey is the assignment's key on the owner, the same for all its pods; idalloc.dev/assignment if empty. No other key below
	// idalloc.dev/ will do.
	AnnotationKey string
	// Log receives what an operator should know: waiting, errors, changes of state. With the zero value, which
	// logr.Discard() is too, that is slog's default; to discard it, use logr.FromSlogHandler(slog.DiscardHandler).
	Log logr.Logger
	// KeepOnCountChange lets Run's function run on when only the count changed. By default its
	// context ends and it is called again with the same id and the new count, because work that is
	// split by a stale count is split wrongly. Work that uses the id alone can keep running.
	KeepOnCountChange bool
	// Stopped is for Start: it blocks until the work under the id has stopped, after Current no
	// longer says assigned, and delays the giving away of the slot until then. Nil means that the
	// work looks at Current before every step, so that it has stopped at once. It must return when its context ends; after an error it
	// is called again. With it the pod hands its slot over to a pod of a newer revision that
	// waits for one. Run has its own.
	Stopped func(context.Context) error
	// FenceAfter turns strict mode on: an id without contact to the API server for that long is gone by
	// itself, on a clock that goes on in suspend, and its slot is given to nobody before that.
	// Current looks at the clock at each call. The context of Run's function ends then; the function must
	// return within ten seconds (assignment.StopGrace). At least 3 s, at most 1 h; zero is off.
	FenceAfter time.Duration
	// ReleaseTimeout bounds the release when Run ends; 10 s if zero.
	ReleaseTimeout time.Duration
	// Clock is time itself if nil.
	Clock clock.Clock
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
	return store.New(o.Config, o.AnnotationKey, o.Clock)
}
