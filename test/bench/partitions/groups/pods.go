package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/bench/played"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const deployment = "worker"

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
	node      *played.Node
	closing   []func() error
	replicas  int32

	mu   sync.Mutex
	pods []*member // those that were not told to end
}

// openPods makes a Deployment without replicas. The pods plan, or a controller does.
func openPods(ctx context.Context, o options, b *book, controller bool) (_ system, err error) {
	c := &cluster{options: o, book: b}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.queues, c.closing, err = openQueues(ctx, o, false); err != nil {
		return nil, err
	}
	if c.env, err = played.Boot(ctx); err != nil {
		return nil, err
	}
	c.closing = append(c.closing, c.env.Stop)
	rules := suite.Rules()
	d := suite.Deployment(deployment, 0, suite.PodSpec(suite.Container("main", "/bin/true")))
	d.Annotations = map[string]string{assignment.PartitionCountKey: strconv.Itoa(o.partitions)}
	if controller {
		d.Spec.Template.Labels[receipt.AssignLabel] = receipt.ByAgent
		rules = played.AgentRules()
	}
	if c.namespace, err = c.env.NewNamespace(ctx, rules...); err != nil {
		return nil, err
	}
	if controller {
		running, err := program.For(ctx, c.env.ControlPlane, c.namespace.Name)
		if err != nil {
			return nil, err
		}
		c.closing = append(c.closing, func() error { running.Stop(); return nil })
	}
	c.node = &played.Node{Live: c.live}
	if err := c.node.Run(ctx, c.env, c.namespace.Name); err != nil {
		return nil, err
	}
	c.closing = append(c.closing, c.node.Stop)
	return c, c.namespace.Create(ctx, d)
}

// live is the life of a pod, until the context life ends.
func (c *cluster) live(all, life context.Context, pod *corev1.Pod) error {
	life, end := context.WithCancel(life)
	defer end()
	m := &member{name: pod.Name, book: c.book, end: end}
	c.mu.Lock()
	c.pods = append(c.pods, m)
	c.mu.Unlock()
	context.AfterFunc(life, func() { c.take(pod.Name) })
	if err := c.work(all, life, m, pod); !m.over.Load() {
		return err
	}
	return nil
}

func (c *cluster) work(all, life context.Context, m *member, pod *corev1.Pod) error {
	if err := pause(all, c.start); err != nil {
		return err
	}
	config, err := c.namespace.Config(all)
	if err != nil {
		return err
	}
	config.Dial = m.dial
	conn, err := c.connect(all, m)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it may be cut
	o := idalloc.Options{PodName: pod.Name, PodNamespace: pod.Namespace, Config: config, Log: logr.FromSlogHandler(slog.DiscardHandler)}
	o.Changed = func(id idalloc.Identity) { c.node.Note(all, c.node.Report(all, pod.Name, id.Assigned())) }
	return idalloc.RunPartitions(life, o, func(ctx context.Context, p idalloc.Partition) error {
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
}

func (c *cluster) join(ctx context.Context) error { return c.scale(ctx, 1) }

func (c *cluster) leave(ctx context.Context, _ string) error { return c.scale(ctx, -1) }

func (c *cluster) scale(ctx context.Context, more int32) error {
	c.replicas += more
	return c.namespace.Scale(ctx, kinds.Deployment, deployment, c.replicas)
}

// replace deletes a pod. One that crashes is deleted by force: else Kubernetes would start its process again in the same pod, which keeps
// its partitions.
func (c *cluster) replace(ctx context.Context, pod string, crash bool) error {
	m := c.take(pod)
	defer m.end()
	if crash {
		m.crash()
		return c.node.Remove(ctx, pod)
	}
	return c.env.Client.CoreV1().Pods(c.namespace.Name).Delete(ctx, pod, metav1.DeleteOptions{})
}

// take removes a pod from the members. It returns nil if the pod is not one.
func (c *cluster) take(pod string) (taken *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.pods, func(m *member) bool { return m.name == pod }); i >= 0 {
		taken = c.pods[i]
		c.pods = slices.Delete(c.pods, i, i+1)
	}
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
	return slices.Sorted(slices.Values(namesOf(c.pods)))
}

func (c *cluster) close() (err error) {
	for _, closes := range slices.Backward(c.closing) {
		err = errors.Join(err, closes())
	}
	return err
}
