//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
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
		return "", heal, nil
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
