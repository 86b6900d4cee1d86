package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/bench/program"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// ways are how a pod gets its gate, and each the name of a namespace in which it does.
var ways = []string{"nothing", "policy", "webhook"} //nolint:gochecknoglobals // a constant that Go cannot express

// measureAdmission tells how long the creation of a pod takes in each way, by turns. Nothing is stored.
func (b *bench) measureAdmission(ctx context.Context) error {
	c, err := b.startWebhook(ctx)
	if err != nil {
		return err
	}
	defer c.Stop()
	pods := b.pods
	b.pods = 0 // the namespaces alone
	for _, way := range ways {
		if err := b.create(ctx, way); err != nil {
			return err
		}
		if err := poll(ctx, func(ctx context.Context) (bool, error) {
			gated, err := b.admit(ctx, way)
			return err == nil && gated == (way != ways[0]), nil // a webhook that does not answer yet is an error
		}); err != nil {
			return fmt.Errorf("pods by %s: %w", way, err)
		}
	}
	took := map[string][]time.Duration{}
	for range pods {
		for _, way := range ways {
			begin := time.Now()
			if _, err := b.admit(ctx, way); err != nil {
				return err
			}
			took[way] = append(took[way], time.Since(begin))
		}
	}
	for _, way := range ways {
		slices.Sort(took[way])
		_, _ = fmt.Fprintf(b.out, "%d pods one after another, completed by %s: p50 %v, p99 %v\n", pods, way,
			took[way][pods/2].Round(10*time.Microsecond), took[way][pods*99/100].Round(10*time.Microsecond))
	}
	return nil
}

// admit creates a pod in a dry run, and reports whether it got a gate.
func (b *bench) admit(ctx context.Context, ns string) (gated bool, err error) {
	pod, err := b.client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "worker-", Labels: map[string]string{receipt.AssignLabel: receipt.ByController}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && len(pod.Spec.SchedulingGates) > 0, err
}

// startWebhook installs the policy for one namespace and the webhook for another, and starts a controller that serves it. An ExternalName stands for the
// network of a cluster.
func (b *bench) startWebhook(ctx context.Context) (*program.Controller, error) {
	in := func(way string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: way}}
	}
	policy, err := suite.Manifest[*admissionv1.MutatingAdmissionPolicy]("config/assign/policy.yaml")
	if err != nil {
		return nil, err
	}
	binding, err := suite.Manifest[*admissionv1.MutatingAdmissionPolicyBinding]("config/assign/binding.yaml")
	if err != nil {
		return nil, err
	}
	hooks, err := suite.Manifest[*admissionv1.MutatingWebhookConfiguration]("config/webhook/webhook.yaml")
	if err != nil {
		return nil, err
	}
	port, err := controlplane.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: in("policy")}
	for i := range hooks.Webhooks {
		h := &hooks.Webhooks[i]
		h.NamespaceSelector, h.ClientConfig.Service.Namespace, h.ClientConfig.Service.Port = in("webhook"), metav1.NamespaceDefault, &port
	}
	api, core, o, meta := b.client.AdmissionregistrationV1(), b.client.CoreV1(), metav1.CreateOptions{}, metav1.ObjectMeta{Name: hooks.Name}
	for _, create := range []func() error{
		func() error { _, err := api.MutatingAdmissionPolicies().Create(ctx, policy, o); return err },
		func() error { _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, binding, o); return err },
		func() error { _, err := api.MutatingWebhookConfigurations().Create(ctx, hooks, o); return err },
		func() error {
			_, err := core.Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{ObjectMeta: meta}, o)
			return err
		},
		func() error {
			_, err := core.Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
				ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}, o)
			return err
		},
	} {
		if err := create(); err != nil {
			return nil, err
		}
	}
	return program.Start(ctx, b.program, b.kubeconfig, metav1.NamespaceDefault, "--webhook="+hooks.Name, fmt.Sprintf("--webhook-port=%d", port))
}
