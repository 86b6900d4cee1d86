package node

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// ErrNoPod is returned for a pod or container that does not run here.
var ErrNoPod = errors.New("node: no such pod or container runs here")

// Node is a running process node.
type Node struct {
	options   Options
	dir       string // takes volumes and logs, until Stop
	log       logr.Logger
	client    kubernetes.Interface
	group     *process.Group
	addresses *addresses
	logs      *httptest.Server

	// ctx ends with Stop; everything that talks to the API uses it.
	ctx     context.Context //nolint:containedctx // the lifetime of the node, not of a call
	cancel  context.CancelFunc
	running sync.WaitGroup
	binding chan *corev1.Pod

	mu      sync.Mutex
	paused  chan struct{} // closed by Resume; nil while not paused
	stopped bool
	objects map[types.UID]*corev1.Pod // as the watch last told
	pods    map[types.UID]*pod        // what runs here
	// finished holds pods that ended while their object was still there: a late
	// event of the watch must not start them again.
	finished map[types.UID]bool
}

// Start registers the node and begins to take pods. ctx bounds only the
// registration; the node runs until Stop.
func Start(ctx context.Context, config *rest.Config, options Options) (*Node, error) {
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{
		options:  options,
		log:      options.Log,
		client:   client,
		binding:  make(chan *corev1.Pod, maxUnbound),
		objects:  map[types.UID]*corev1.Pod{},
		pods:     map[types.UID]*pod{},
		finished: map[types.UID]bool{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.prepare(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("node: %w", err)
	}
	for range binders {
		n.running.Go(n.bind)
	}
	n.running.Go(n.watch)
	return n, nil
}

func (n *Node) prepare(ctx context.Context) (err error) {
	if n.dir, err = os.MkdirTemp("", "idalloc-node-"); err != nil {
		return err
	}
	if n.addresses, err = newAddresses(ctx); err != nil {
		return err
	}
	if n.group, err = process.NewGroup(); err != nil {
		return err
	}
	n.serveLogs()
	return n.register(ctx)
}

// Stop kills all processes with SIGKILL and returns when they are gone. Neither
// the Node object nor the pods are touched: it is a machine that lost power.
func (n *Node) Stop() {
	n.mu.Lock()
	n.stopped = true
	n.mu.Unlock()
	n.cancel()
	if n.group != nil {
		n.group.Close()
	}
	n.running.Wait()
	if n.logs != nil {
		n.logs.Close()
	}
	if n.addresses != nil {
		n.addresses.close()
	}
	if err := os.RemoveAll(n.dir); err != nil {
		n.log.Error(err, "cannot remove the node's directory", "dir", n.dir)
	}
}

// Pause cuts the node off from the API: it hears of no change and reports none,
// while its processes run on. Containers that end are still restarted.
func (n *Node) Pause() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused == nil {
		n.paused = make(chan struct{})
	}
}

// Resume ends Pause. The node learns at once of everything that it missed.
func (n *Node) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused == nil {
		return
	}
	close(n.paused)
	n.paused = nil
	for _, object := range n.objects {
		n.observe(object)
	}
	for uid, p := range n.pods {
		if _, ok := n.objects[uid]; !ok {
			p.vanish()
		}
	}
}

// connected returns when the node may use the API: at once, or after Resume.
func (n *Node) connected(ctx context.Context) error {
	n.mu.Lock()
	paused := n.paused
	n.mu.Unlock()
	if paused == nil {
		return ctx.Err()
	}
	select {
	case <-paused:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
