package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
)

const (
	cdapKey = "cdap.instances.assignment"
	// cdapSleep is the longest sleep after a conflict.
	cdapSleep = 300 * time.Millisecond
)

// cdap is the protocol that CDAP's "Instance ID generation in Kubernetes" describes: read the
// Deployment; take the lowest id that the annotation does not have; write the whole Deployment back;
// when somebody else wrote it in between, sleep a random time of up to 300 ms and begin again.
type cdap struct{}

func (cdap) name() string { return "cdap" }

func (cdap) prepare(context.Context, *workload) error { return nil }

func (cdap) verify(ctx context.Context, w *workload, all []claimed) error {
	return w.verifyMap(ctx, cdapKey, all)
}

func (cdap) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return 0, nil, err
	}
	deployments := client.AppsV1().Deployments(c.namespace)
	for {
		id, err := cdapOnce(ctx, deployments, c)
		if err == nil {
			return id, nil, nil
		}
		if !apierrors.IsConflict(err) {
			return 0, nil, err
		}
		if err := pause(ctx, cdapSleep); err != nil {
			return 0, nil, err
		}
	}
}

func cdapOnce(ctx context.Context, deployments typedappsv1.DeploymentInterface, c claimant) (int, error) {
	d, err := deployments.Get(ctx, c.deployment, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	held := map[string]string{}
	if text := d.Annotations[cdapKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &held); err != nil {
			return 0, fmt.Errorf("annotation %s: %w", cdapKey, err)
		}
	}
	for id, pod := range held {
		if pod == c.pod.Name {
			return strconv.Atoi(id)
		}
	}
	id := 0
	for held[strconv.Itoa(id)] != "" {
		id++
	}
	held[strconv.Itoa(id)] = c.pod.Name
	text, err := json.Marshal(held)
	if err != nil {
		return 0, err
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[cdapKey] = string(text)
	_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
	return id, err
}

// pause waits for a random time of up to most, or until ctx ends.
func pause(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
