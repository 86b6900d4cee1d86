//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// networkFaults are between the pods of one workload and the API server.
func (c *chaos) networkFaults() []fault {
	return []fault{
		{kind: "network cut", weight: 3, do: c.cut},
		{kind: "network of a pod cut", weight: 6, do: c.cutOff},
		{kind: "network latency", weight: 2, do: c.poison(
			toxic{Type: "latency", Stream: toPods, Attributes: map[string]int{"latency": 400, "jitter": 350}},
			toxic{Type: "latency", Stream: toServer, Attributes: map[string]int{"latency": 200, "jitter": 200}})},
		{kind: "network reset", weight: 2, do: c.poison(toxic{Type: "reset_peer", Stream: toPods, Attributes: within(150)})},
		{kind: "network silent", weight: 2, do: c.poison(toxic{Type: "timeout", Stream: toPods, Attributes: within(0)})},
		{kind: "network answerless", weight: 2, do: c.poison(toxic{Type: "timeout", Stream: toPods, Attributes: within(700)})},
		{kind: "network narrow", weight: 2, do: c.poison( // KB a second
			toxic{Type: "bandwidth", Stream: toPods, Attributes: map[string]int{"rate": 4}},
			toxic{Type: "bandwidth", Stream: toServer, Attributes: map[string]int{"rate": 2}})},
		{kind: "network slow close", weight: 2, do: c.poison(
			toxic{Type: "reset_peer", Stream: toPods, Attributes: within(1000)},
			toxic{Type: "slow_close", Stream: toPods, Attributes: map[string]int{"delay": 3000}},
			toxic{Type: "slow_close", Stream: toServer, Attributes: map[string]int{"delay": 3000}})},
	}
}

// Streams of a toxic.
const (
	toPods   = "downstream"
	toServer = "upstream"
)

// within is for toxics that end a connection after some milliseconds; with 0, "timeout" keeps it open and silent.
func within(milliseconds int) map[string]int { return map[string]int{"timeout": milliseconds} }

// poison makes a workload's connections to the API server bad.
func (c *chaos) poison(toxics ...toxic) action {
	return func(ctx context.Context, d draw) (string, func(context.Context) error, error) {
		proxy := d.on.proxy
		before := proxy.traffic()
		heal, err := d.on.disturb(ctx, func(ctx context.Context) error {
			mine := slices.Clone(toxics)
			for i := range mine {
				mine[i].Name = fmt.Sprintf("%s-%s-%d", mine[i].Type, mine[i].Stream, i)
			}
			return proxy.add(ctx, mine...)
		})
		if err != nil {
			return "", nil, err
		}
		d.on.stir(ctx, d.number)
		return "", func(ctx context.Context) error {
			met := proxy.traffic().since(before)
			c.mu.Lock()
			for _, x := range toxics {
				c.toxics[x.Type] = c.toxics[x.Type].and(met)
			}
			c.mu.Unlock()
			return heal(ctx)
		}, nil
	}
}

// cut breaks a workload's connections to the API server, and refuses new ones.
func (c *chaos) cut(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	heal, err := d.on.disturb(ctx, d.on.proxy.disable)
	return "", heal, err
}

// disturb does something to the workload's proxy when it is its turn, until heal.
func (v *victim) disturb(ctx context.Context, do func(context.Context) error) (heal func(context.Context) error, err error) {
	release, err := v.proxy.faults.take(ctx)
	if err != nil {
		return nil, err
	}
	heal = func(ctx context.Context) error {
		defer release()
		return v.proxy.restart(ctx)
	}
	if err := do(ctx); err != nil {
		return nil, errors.Join(err, heal(context.WithoutCancel(ctx)))
	}
	return heal, nil
}

// cutOff drops what one pod sends to the API server: it hears of nothing, and the others go on.
func (c *chaos) cutOff(ctx context.Context, d draw) (string, func(context.Context) error, error) {
	p, err := d.on.pick(ctx, d.pick, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" })
	if err != nil {
		return "", nil, err
	}
	rule := func(ctx context.Context, action string) error {
		out, err := exec.CommandContext(ctx, "iptables", "-w", action, "INPUT", "-s", p.Status.PodIP, "-p", "tcp", "--dport", d.on.proxy.port, "-j", "DROP").CombinedOutput() //nolint:gosec // arguments of the test
		if err != nil {
			err = fmt.Errorf("iptables %s: %w: %s", action, err, out)
		}
		return err
	}
	return p.Name, func(ctx context.Context) error { return rule(ctx, "-D") }, rule(ctx, "-I")
}

// stir changes something on the Deployment, of which each of its pods hears: connections without traffic
// are not harmed by most toxics. With the API server down there is none; it is counted.
func (v *victim) stir(ctx context.Context, number int) {
	patch := []byte(`{"metadata":{"annotations":{"chaos-stir":"` + strconv.Itoa(number) + `"}}}`)
	if _, err := client.AppsV1().Deployments(v.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "chaos"}); err != nil {
		GinkgoWriter.Printf("stirring %s: %v\n", v.label, err)
	}
}

// traffic is what came through a proxy, by the API server's side of it.
type traffic struct {
	// faults counts those that traffic met.
	faults int
	// answered are the bytes that the API server sent, opened and closed are connections.
	answered, opened, closed int64
}

func (t traffic) since(before traffic) traffic {
	d := traffic{answered: t.answered - before.answered, opened: t.opened - before.opened, closed: t.closed - before.closed}
	if d.answered > 0 || d.closed > 0 {
		d.faults = 1
	}
	return d
}

func (t traffic) and(u traffic) traffic {
	return traffic{t.faults + u.faults, t.answered + u.answered, t.opened + u.opened, t.closed + u.closed}
}

// tap is between one proxy and the API server, and counts.
type tap struct {
	server                   string
	answered, opened, closed atomic.Int64
}

// startTap returns a tap and its address. It ends with the spec.
func startTap(ctx context.Context, server string) (t *tap, address string) {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	t = &tap{server: server}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			pods, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			running.Go(func() { t.serve(ctx, pods.(*net.TCPConn)) }) //nolint:forcetypeassert,errcheck // a TCP listener's
		}
	})
	DeferCleanup(func() {
		cancel()
		_ = l.Close()
		running.Wait()
	})
	return t, l.Addr().String()
}

// serve passes one connection on until both sides have ended it.
func (t *tap) serve(ctx context.Context, pods *net.TCPConn) {
	defer pods.Close() //nolint:errcheck // nobody is there to be told
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.server)
	if err != nil {
		return
	}
	server := c.(*net.TCPConn) //nolint:forcetypeassert,errcheck // a TCP dial's
	defer server.Close()       //nolint:errcheck // nobody is there to be told
	stop := context.AfterFunc(ctx, func() { _, _ = pods.Close(), server.Close() })
	defer stop()
	t.opened.Add(1)
	defer t.closed.Add(1)
	var asking sync.WaitGroup
	asking.Go(func() {
		_, _ = io.Copy(server, pods) // however it ends, the other side hears of it
		_ = server.CloseWrite()
	})
	_, _ = io.Copy(io.MultiWriter(counter{&t.answered}, pods), server)
	_ = pods.CloseWrite()
	asking.Wait()
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}
