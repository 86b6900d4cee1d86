package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	deployment = "worker"
	nodeName   = "player"
)

func pods() []contender {
	const limits = "failover-after 30 s"
	return []contender{
		{"idalloc, pods plan", limits, true, func(ctx context.Context, o options, b *book) (system, error) { return openPods(ctx, o, b, false) }},
		{"idalloc, controller plans", limits, true, func(ctx context.Context, o options, b *book) (system, error) { return openPods(ctx, o, b, true) }},
	}
}

// cluster is a Deployment whose pods run in this process, on a control plane of its own. Their partitions are queues of a RabbitMQ.
type cluster struct {
	options
	*queues

	book      *book
	env       *suite.Suite
	namespace *suite.Namespace
	closing   []func() error
	running   sync.WaitGroup

	mu       sync.Mutex
	replicas int32
	pods     map[types.UID]*member // those that were not told to end
	err      error
}

// openPods makes a Deployment without replicas. The pods plan, or a controller does.
func openPods(ctx context.Context, o options, b *book, controller bool) (_ system, err error) {
	c := &cluster{options: o, book: b, pods: map[types.UID]*member{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.queues, c.closing, err = openQueues(ctx, o, false); err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	c.env = &suite.Suite{ControlPlane: plane}
	c.closing = append(c.closing, c.env.Stop)
	if c.env.Client, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		return nil, err
	}
	rules := suite.Rules()
	d := suite.Deployment(deployment, 0, suite.PodSpec(suite.Container("main", "/bin/true")))
	d.Annotations = map[string]string{assignment.PartitionCountKey: strconv.Itoa(o.partitions)}
	if controller {
		d.Spec.Template.Labels[receipt.AssignLabel] = receipt.ByAgent
		rules = slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] != "pods" })
	}
	if c.namespace, err = c.env.NewNamespace(ctx, rules...); err != nil {
		return nil, err
	}
	if controller {
		if err := c.control(ctx); err != nil {
			return nil, err
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if _, err := c.env.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	c.follow(ctx)
	return c, c.namespace.Create(ctx, d)
}

// control starts a controller.
func (c *cluster) control(ctx context.Context) error {
	path, err := program.Build(ctx, c.env.ControlPlane.Dir())
	if err != nil {
		return err
	}
	kubeconfig, err := c.env.ControlPlane.Kubeconfig(controlplane.Admin)
	if err != nil {
		return err
	}
	running, err := program.Start(ctx, path, kubeconfig, c.namespace.Name)
	if err == nil {
		c.closing = append(c.closing, func() error { running.Stop(); return nil })
	}
	return err
}

// follow runs each pod of the namespace.
func (c *cluster) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.env.Client.CoreV1().RESTClient(), "pods", c.namespace.Name, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.hear(ctx, o) },
			UpdateFunc: func(_, o any) { c.hear(ctx, o) },
		},
	})
	c.running.Go(func() { informer.RunWithContext(ctx) })
	c.closing = append(c.closing, func() error {
		cancel()
		c.running.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err
	})
}

// hear begins and ends the life of a pod.
func (c *cluster) hear(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.pods[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil && m != nil:
		delete(c.pods, pod.UID)
		m.end()
	case pod.DeletionTimestamp == nil && m == nil && pod.Spec.NodeName == "":
		life, end := context.WithCancel(ctx)
		m := &member{name: pod.Name, book: c.book, end: end}
		c.pods[pod.UID] = m
		c.running.Go(func() {
			defer end()
			if err := c.live(ctx, life, m, pod); err != nil && ctx.Err() == nil && !m.over.Load() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.err = errors.Join(c.err, fmt.Errorf("%s: %w", pod.Name, err))
			}
		})
	}
}

// live is the life of a pod, until the context life ends.
func (c *cluster) live(ctx, life context.Context, m *member, pod *corev1.Pod) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
	if err := c.env.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := pause(ctx, c.start); err != nil {
		return err
	}
	config, err := c.namespace.Config(ctx)
	if err != nil {
		return err
	}
	config.Dial = m.dial
	conn, err := c.connect(ctx, m)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it may be cut
	o := idalloc.Options{PodName: pod.Name, PodNamespace: pod.Namespace, Config: config, Log: logr.FromSlogHandler(slog.DiscardHandler)}
	o.Changed = func(id idalloc.Identity) { c.report(ctx, pod.Name, id.Assigned()) }
	err = idalloc.RunPartitions(life, o, func(ctx context.Context, p idalloc.Partition) error {
		ch, all, err := deliveries(conn, p.Number)
		if err != nil {
			return err
		}
		defer func() { _ = ch.Close() }() // the broker answers after it has put back what is not acknowledged
		for {
			select {
			case <-ctx.Done():
				return nil
			case d, ok := <-all:
				if !ok {
					<-ctx.Done() // the connection was cut
					return nil
				}
				m.handle(p.Number, d)
			}
		}
	})
	return errors.Join(err, c.remove(ctx, pod.Name))
}

// report says that a pod is ready, or not. A rollout waits for that.
func (c *cluster) report(ctx context.Context, pod string, ready bool) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	patch := fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		status, time.Now().UTC().Format(time.RFC3339))
	_, _ = c.env.Client.CoreV1().Pods(c.namespace.Name).Patch(ctx, pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status") // the pod may be gone
}

// remove removes the object of a pod, as the kubelet does when the pod has ended, and as a person does who deletes it by force.
func (c *cluster) remove(ctx context.Context, pod string) error {
	now := int64(0)
	return c.env.Client.CoreV1().Pods(c.namespace.Name).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func (c *cluster) join(ctx context.Context) error { return c.scale(ctx, 1) }

func (c *cluster) leave(ctx context.Context, _ string) error { return c.scale(ctx, -1) }

func (c *cluster) scale(ctx context.Context, more int32) error {
	c.replicas += more
	return c.namespace.Scale(ctx, store.Deployment, deployment, c.replicas)
}

// replace deletes a pod. One that crashes is deleted by force: else Kubernetes would start its process again in the same pod, which keeps
// its partitions.
func (c *cluster) replace(ctx context.Context, pod string, crash bool) error {
	m := c.take(pod)
	defer m.end()
	if crash {
		m.crash()
		return c.remove(ctx, pod)
	}
	return c.env.Client.CoreV1().Pods(c.namespace.Name).Delete(ctx, pod, metav1.DeleteOptions{})
}

// take has a pod not be a member any more.
func (c *cluster) take(pod string) (taken *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.pods, func(_ types.UID, m *member) bool {
		if m.name == pod {
			taken = m
		}
		return m.name == pod
	})
	return taken
}

// roll does what kubectl rollout restart does, and waits until no pod is left that was there.
func (c *cluster) roll(ctx context.Context, _ func() error) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	old := c.members()
	_, err := c.env.Client.AppsV1().Deployments(c.namespace.Name).Patch(ctx, deployment, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, look, patience, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(c.members(), func(name string) bool { return slices.Contains(old, name) }), nil
	})
}

func (c *cluster) members() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for m := range maps.Values(c.pods) {
		names = append(names, m.name)
	}
	return slices.Sorted(slices.Values(names))
}

func (c *cluster) close() (err error) {
	for _, closes := range slices.Backward(c.closing) {
		err = errors.Join(err, closes())
	}
	return err
}
