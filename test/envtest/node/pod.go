package node

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage is how far a pod is in its life.
type stage int

const (
	preparing    stage = iota // no container was started yet, or init containers run
	initialized               // the containers were started
	ended                     // no process runs any more, and none will
	endedByEvict              // the same, because of Evict
)

// pod runs one pod, from its binding to the removal of its object. Its goroutine
// (run) walks through the life; the watch only records what it sees and calls
// stop.
type pod struct {
	node    *Node
	log     logr.Logger
	dir     string
	object  *corev1.Pod // as first seen: what of it is used never changes
	volumes map[string]string

	// ctx ends when the pod is to stop: nothing is started from then on.
	ctx    context.Context //nolint:containedctx // the lifetime of the pod, not of a call
	cancel context.CancelFunc
	// killed is closed when the grace period is over.
	killed   chan struct{}
	killOnce sync.Once
	// changed has a token when latest changed, dirty when the status did.
	changed, dirty chan struct{}
	// over is closed when the stage is final, reported when the API server knows.
	over, reported chan struct{}
	running        sync.WaitGroup

	inits, mains []*container

	projecting sync.Mutex // one writes the files of volumes

	mu         sync.Mutex
	prepared   bool        // the volumes are there
	latest     *corev1.Pod // nil when the object is gone
	address    string
	kubeconfig string
	startTime  metav1.Time
	stage      stage
	evicted    string // why, if Evict was called
	deadline   time.Time
	timer      *time.Timer
}

func newPod(n *Node, object *corev1.Pod) *pod {
	p := &pod{
		node:      n,
		log:       n.log.WithValues("pod", object.Namespace+"/"+object.Name),
		dir:       filepath.Join(n.dir, "pods", string(object.UID)),
		object:    object,
		volumes:   map[string]string{},
		killed:    make(chan struct{}),
		changed:   make(chan struct{}, 1),
		dirty:     make(chan struct{}, 1),
		over:      make(chan struct{}),
		reported:  make(chan struct{}),
		startTime: metav1.Now(),
	}
	p.ctx, p.cancel = context.WithCancel(n.ctx)
	for i := range object.Spec.InitContainers {
		spec := &object.Spec.InitContainers[i]
		role := initContainer
		if spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = sidecar
		}
		p.inits = append(p.inits, newContainer(p, spec, role))
	}
	for i := range object.Spec.Containers {
		p.mains = append(p.mains, newContainer(p, &object.Spec.Containers[i], mainContainer))
	}
	p.update(object)
	return p
}

// run is the pod's life. It returns when nothing is left to do for it.
func (p *pod) run() {
	if play := p.node.options.Play; play != nil { // the pod is bound here, all pods at a time
		bind := func(ctx context.Context) error { return p.node.bindOnce(ctx, p.object) }
		if p.node.retry(p.node.ctx, bind) == nil && play(p.node.ctx, p.ctx, p.object) {
			_ = p.node.retry(p.node.ctx, p.remove) // fails only when the node is stopped
		}
		p.cancel()
		p.stopTimer()
		return
	}
	p.running.Go(p.report)
	p.live()
	p.terminate()
	p.conclude()
	p.settle()
	p.cancel()
	p.stopTimer()
	p.running.Wait()
	p.node.addresses.giveBack(p.address)
	if err := os.RemoveAll(p.dir); err != nil {
		p.log.Error(err, "cannot remove the pod's directory", "dir", p.dir)
	}
}

// live starts what is to run and returns when all of it ended, or when the pod
// is to stop.
func (p *pod) live() {
	if err := p.node.retry(p.ctx, p.setup); err != nil {
		return
	}
	p.touch()
	for _, c := range p.inits {
		if !p.initialize(c) {
			return
		}
	}
	p.setStage(initialized)
	for _, c := range p.mains {
		p.launch(c)
	}
	for _, c := range p.mains {
		select {
		case <-c.ended:
		case <-p.ctx.Done():
			return
		}
	}
}

// initialize runs an init container and says whether the next one may start.
func (p *pod) initialize(c *container) bool {
	if p.ctx.Err() != nil {
		return false
	}
	p.launch(c)
	select {
	case <-c.up: // a sidecar that started
		return true
	case <-c.ended:
		return c.role == initContainer && c.succeeded()
	case <-p.ctx.Done():
		return false
	}
}

func (p *pod) launch(c *container) {
	c.launched = true
	p.running.Go(c.supervise)
}

// conclude makes the outcome final.
func (p *pod) conclude() {
	p.mu.Lock()
	p.stage = ended
	if p.evicted != "" {
		p.stage = endedByEvict
	}
	p.mu.Unlock()
	close(p.over)
}

func (p *pod) setStage(s stage) {
	p.mu.Lock()
	p.stage = s
	p.mu.Unlock()
	p.touch()
}

// update records the object's present state; a deletion begins to stop the pod.
func (p *pod) update(object *corev1.Pod) {
	p.mu.Lock()
	p.latest = object
	prepared := p.prepared
	p.mu.Unlock()
	if prepared {
		p.project()
	}
	notify(p.changed)
	if object.DeletionTimestamp != nil {
		p.stop(gracePeriod(object))
	}
}

// vanish records that the object is gone. As a kubelet does, the pod's own grace
// period is honoured even if the object was deleted by force.
func (p *pod) vanish() {
	p.mu.Lock()
	p.latest = nil
	p.mu.Unlock()
	notify(p.changed)
	p.stop(gracePeriod(p.object))
}

// touch asks for a status report.
func (p *pod) touch() { notify(p.dirty) }

// notify leaves a token in a channel of capacity one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
