package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	// inFlight is how many patches of the floor are under way at a time, as of the controller's.
	inFlight = 32
	polling  = 50 * time.Millisecond
	// perPod is how much more seldom the controller is asked how many ids it gave: to count takes it time.
	perPod = 50 * time.Microsecond
)

// template is a pod template like one that kubectl idalloc inject writes.
func template(name string) corev1.PodTemplateSpec {
	field := func(key string) *corev1.ObjectFieldSelector {
		return &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + key + "']"}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, receipt.AssignLabel: receipt.ByController}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: receipt.Gate}},
			Containers: []corev1.Container{{
				Name: "main", Image: "none", Env: []corev1.EnvVar{
					{Name: "IDALLOC_ID", ValueFrom: &corev1.EnvVarSource{FieldRef: field(receipt.IDKey)}},
					{Name: "IDALLOC_COUNT", ValueFrom: &corev1.EnvVarSource{FieldRef: field(receipt.StartCountKey)}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "idalloc", MountPath: "/var/run/idalloc", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "idalloc", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "id", FieldRef: field(receipt.IDKey)}, {Path: "count", FieldRef: field(receipt.CountKey)}, {Path: "identity.json", FieldRef: field(receipt.IdentityKey)},
			}}}}},
		},
	}
}

func (b *bench) deployment(ctx context.Context, ns, name string, each int32) error {
	_, err := b.client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &each, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name),
	}}, metav1.CreateOptions{})
	return err
}

// create makes the owners in a namespace of their own.
func (b *bench) create(ctx context.Context, ns string) error {
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := b.client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	}); err != nil {
		return fmt.Errorf("service account of %s: %w", ns, err)
	}
	for i := range b.owners {
		if err := b.deployment(ctx, ns, fmt.Sprintf("worker-%d", i), int32(b.pods/b.owners)); err != nil { //nolint:gosec // it is small
			return err
		}
	}
	return nil
}

// gated returns how long Deployments take to make pods that wait.
func (b *bench) gated(ctx context.Context, ns string) (time.Duration, error) {
	begin := time.Now()
	if err := b.create(ctx, ns); err != nil {
		return 0, err
	}
	err := b.until(ctx, ns, b.pods)
	return time.Since(begin), err
}

// until waits until so many pods have a gate.
func (b *bench) until(ctx context.Context, ns string, n int) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := b.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // what the API server has in its cache
		if err != nil {
			return false, err
		}
		gated := 0
		for i := range list.Items {
			gated += len(list.Items[i].Spec.SchedulingGates)
		}
		return gated == n, nil
	})
}

func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, polling, true, done)
}

// remove removes the owners and waits until their pods are gone.
func (b *bench) remove(ctx context.Context, ns string) error {
	if b.rounds == 1 && !b.floor {
		return nil
	}
	if err := b.client.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := b.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(list.Items) == 0, err
	})
}

// twoPatches is what no controller can go below.
func twoPatches(ctx context.Context, client kubernetes.Interface, ns string) error {
	list, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, text := range []string{
		`{"metadata":{"annotations":{"idalloc.dev/receipt":"%0100d"},"labels":{"idalloc.dev/owner":"deployment.worker","idalloc.dev/instance-id":"%d"}}}`,
		`{"metadata":{"annotations":{"idalloc.dev/receipt":"%0110d","idalloc.dev/identity":"%0180d"}},"spec":{"schedulingGates":null}}`,
	} {
		ctx, cancel := context.WithCancelCause(ctx)
		workqueue.ParallelizeUntil(ctx, inFlight, len(list.Items), func(i int) {
			_, err := client.CoreV1().Pods(ns).Patch(ctx, list.Items[i].Name, types.StrategicMergePatchType, fmt.Appendf(nil, text, i, i), metav1.PatchOptions{})
			if err != nil {
				cancel(err)
			}
		})
		err := context.Cause(ctx)
		cancel(nil)
		if err != nil {
			return err
		}
	}
	return nil
}
