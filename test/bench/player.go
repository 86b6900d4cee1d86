package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	nodeName = "player"
	// releaseTimeout is how long an instance may take to give its slot back, as of Run's default.
	releaseTimeout = 10 * time.Second
)

// player is a node in this process: every pod that is bound to it is an instance of idalloc with a
// connection of its own. A pod is Ready while it has an id. A pod that is deleted gives its slot back,
// then its object is removed, as a kubelet does.
type player struct {
	w      *workload
	client kubernetes.Interface
	// see is told of everything that happens to the instances, from many goroutines.
	see func(sighting)
	// crash leaves the objects of deleted pods behind, and their instances end without giving anything
	// back: what a node does that hangs.
	crash bool
	// board is told who works on which partition. It is nil without partitions.
	board *board

	stop    context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	ends    map[types.UID]context.CancelFunc
	err     error // the first one
}

// sighting is one moment of one instance.
type sighting struct {
	at  time.Time
	pod string
	// started is the moment at which the instance began, ended that at which it stopped to act; otherwise
	// id is what it published.
	started, ended bool
	id             idalloc.Identity
}

// play starts to run the workload's pods, until finish.
func play(ctx context.Context, w *workload, crash bool, see func(sighting)) (*player, error) {
	return playWith(ctx, w, &player{see: see, crash: crash})
}

// playWith is play for a player with options of its own.
func playWith(ctx context.Context, w *workload, p *player) (*player, error) {
	config := w.env.ControlPlane.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p.w, p.client, p.ends = w, client, map[types.UID]context.CancelFunc{}
	if err := p.register(ctx); err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(ctx)
	pods := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", w.Name, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: pods,
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { p.hear(ctx, o) },
			UpdateFunc: func(_, o any) { p.hear(ctx, o) },
			DeleteFunc: func(o any) { p.gone(o) },
		},
	})
	p.running.Go(func() { informer.RunWithContext(ctx) })
	return p, nil
}

// finish ends everything that play started.
func (p *player) finish() {
	p.stop()
	p.running.Wait()
}

// register makes the Node object, so that the pod garbage collector leaves the pods alone.
func (p *player) register(ctx context.Context) error {
	nodes := p.client.CoreV1().Nodes()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	ready := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Player","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, now, now)
	_, err = nodes.Patch(ctx, nodeName, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
	return err
}

// hear takes in a pod as it is now: it is bound, begun or ended, once each.
func (p *player) hear(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	end, known := p.ends[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil && known:
		end()
	case pod.DeletionTimestamp == nil && !known:
		life, end := context.WithCancel(ctx)
		p.ends[pod.UID] = end
		p.running.Go(func() {
			defer end()
			p.note(ctx, p.live(ctx, life, pod))
		})
	}
}

// gone ends the instance of a pod whose object is gone.
func (p *player) gone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := p.ends[pod.UID]; end != nil {
		end()
	}
}

// note keeps an error, unless all is over.
func (p *player) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// live is the life of one pod, until the context life ends; all is the player's own context.
func (p *player) live(all, life context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
	if err := p.client.CoreV1().Pods(p.w.Name).Bind(all, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("bind %s: %w", pod.Name, err)
	}
	config, err := p.w.connection(all)
	if err != nil {
		return fmt.Errorf("connection of %s: %w", pod.Name, err)
	}
	p.see(sighting{at: time.Now(), pod: pod.Name, started: true})
	err = p.instance(all, life, config, pod)
	p.see(sighting{at: time.Now(), pod: pod.Name, ended: true})
	if err != nil || p.crash {
		return err
	}
	now := int64(0)
	err = p.client.CoreV1().Pods(p.w.Name).Delete(all, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// instance holds an id for a pod until life ends.
func (p *player) instance(all, life context.Context, config *rest.Config, pod *corev1.Pod) error {
	o := idalloc.Options{
		PodName: pod.Name, PodNamespace: p.w.Name, Config: config, Log: quiet(),
		Partitions: p.board != nil,
		Stop: func(_ context.Context, s idalloc.Stopping) error { // there is no work to stop
			if p.board != nil {
				p.board.stopped(pod.Name, s.Partitions)
			}
			return nil
		},
	}
	i, err := idalloc.Start(life, o)
	if err != nil {
		if life.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: %w", pod.Name, err)
	}
	p.publish(all, life, i, pod)
	if p.crash || all.Err() != nil {
		abandon(all, i)
		return nil
	}
	release, cancel := context.WithTimeout(all, releaseTimeout)
	defer cancel()
	_ = i.Close(release) // if it fails, its slot comes free when the pod is gone
	return nil
}

// publish follows what an instance publishes, and makes its pod Ready while it has an id.
func (p *player) publish(all, life context.Context, i *idalloc.Instance, pod *corev1.Pod) {
	ready, news := false, make(chan bool, 1)
	var reports sync.WaitGroup
	reports.Go(func() {
		for is := range news {
			p.note(all, p.setReady(all, pod.Name, is))
		}
	})
	defer reports.Wait()
	defer close(news)
	for {
		select {
		case <-life.Done():
			if p.board != nil {
				p.board.look(pod.Name, func() []idalloc.Partition { return nil })
			}
			p.see(sighting{at: time.Now(), pod: pod.Name, id: idalloc.Identity{}})
			return
		case id, more := <-i.Changes():
			if !more {
				return
			}
			p.see(sighting{at: time.Now(), pod: pod.Name, id: id})
			if p.board != nil {
				p.board.look(pod.Name, i.Owned)
			}
			if id.Assigned() != ready {
				ready = id.Assigned()
				select {
				case <-news: // it is out of date
				default:
				}
				news <- ready
			}
		}
	}
}

// setReady reports the state of a pod.
func (p *player) setReady(ctx context.Context, pod string, ready bool) error {
	status, at := corev1.ConditionFalse, time.Now().UTC().Format(time.RFC3339)
	if ready {
		status = corev1.ConditionTrue
	}
	body := fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"ContainersReady","status":%q,"lastTransitionTime":%q},{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		status, at, status, at)
	_, err := p.client.CoreV1().Pods(p.w.Name).Patch(ctx, pod, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ready waits until n pods have reported an id and there are no others.
func (p *player) ready(ctx context.Context, n int) error {
	return p.w.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := p.w.Pods(ctx, p.w.deployment)
		if err != nil || len(pods) != n {
			return false, err
		}
		for i := range pods {
			if pods[i].DeletionTimestamp != nil || !suite.Ready(&pods[i]) {
				return false, nil
			}
		}
		return true, p.failed()
	})
}

// failed returns the first thing that went wrong.
func (p *player) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
