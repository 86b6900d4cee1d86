package reconciler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
)

const (
	// firstAsk and lastAsk bound the interval at which the API server is asked for a missing kind.
	firstAsk, lastAsk = 5 * time.Second, time.Minute
	// namespaceFile contains the namespace of the pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// ErrKindCame means that the cluster now has a kind that was missing when this process started. The process must start again to watch it.
var ErrKindCame = errors.New("the cluster now has a kind that was missing: the controller restarts to use it")

// ErrNamespaceCame means that the controller may now list pods in a namespace in which it could not when this process started.
var ErrNamespaceCame = errors.New("the controller may now serve a namespace that was missing: it restarts to use it")

// missed is a manager.Runnable that waits for kinds that the cluster does not have, and for namespaces in which the controller may not list pods. It ends with
// ErrKindCame or ErrNamespaceCame when one of them comes, because caches and watches are made only at the start. It polls at growing intervals: a watch of all
// definitions would need a permission that nothing else needs.
type missed struct {
	*Reconciler

	names  []string
	mapper meta.RESTMapper
	// away are the namespaces, which are asked for at server.
	away   []string
	server client.Reader
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Replicas that are not elected also need the kind.
func (missed) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m missed) Start(ctx context.Context) error {
	for _, name := range m.names {
		m.metrics.missing.WithLabelValues(name).Set(1)
		// Log: the cluster does not have a kind of --kind. Its pods get no ids until it comes. Pods of other kinds get theirs.
		// Do: install the kind, or remove it from the chart's value controller.kinds.
		m.log.Info("a kind is missing", "kind", name)
		m.tellMissing(ctx, name)
	}
	for _, namespace := range m.away {
		m.metrics.away.WithLabelValues(namespace).Set(1)
		// Log: the controller may not list pods in a namespace of --namespace: perhaps it was deleted, and its Role with it. Its pods get no ids until that
		// changes. Pods of other namespaces get theirs.
		// Do: remove it from the chart's value controller.namespaces, or create it and install the chart again.
		m.log.Info("a namespace is missing", "namespace", namespace)
	}
	for wait := firstAsk; ; wait = min(2*wait, lastAsk) {
		select {
		case <-ctx.Done():
			return nil
		case <-m.store.Clock.After(wait):
		}
		if _, still, _ := kinds.BuiltIn().Find(m.mapper, m.names...); len(still) < len(m.names) {
			return fmt.Errorf("%w: missing before: %s; missing now: %q", ErrKindCame, strings.Join(m.names, ", "), still)
		}
		for _, namespace := range m.away {
			if onePod(ctx, m.server, namespace) == nil {
				return fmt.Errorf("%w: %s", ErrNamespaceCame, namespace)
			}
		}
	}
}

// tellMissing writes an Event on the controller's own pod, if it runs in one.
func (m missed) tellMissing(ctx context.Context, kind string) {
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return
	}
	about := metav1.OwnerReference{APIVersion: "v1", Kind: podKind, Name: m.name}
	if pod, err := m.store.GetPod(ctx, string(namespace), m.name); err == nil { // if it serves one namespace, it may not read its own pod
		about.UID = pod.UID
	}
	// Event: on the pod of the controller: the cluster does not have a kind of --kind. Its pods get no ids until it comes. Pods of other kinds get theirs.
	// Do: install the kind, or remove it from the chart's value controller.kinds.
	m.event(ctx, about, string(namespace), kubeevent.Warning, "KindMissing",
		fmt.Sprintf("the cluster has no kind %s: pods of it get no ids until it comes", sanitise.Quoted(kind)))
}
