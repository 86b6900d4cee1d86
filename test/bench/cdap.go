package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const cdapKey = "cdap.instances.assignment"

var errCDAPFull = errors.New("live pods have all ids of the range")

// cdap is the protocol that CDAP's "Instance ID generation in Kubernetes" describes: read the Deployment; take the lowest id below
// the number of replicas that the annotation does not have; replace the whole Deployment. A client that meets another write begins again
// at once. That it removes entries of pods that are gone is left out: here each pod finds room.
type cdap struct{}

func (cdap) name() string { return "cdap" }

func (cdap) deployment(n int) *appsv1.Deployment { return plain(n) }

func (cdap) prepare(context.Context, *workload) error { return nil }

func (cdap) verify(ctx context.Context, w *workload, all []claimed) error {
	return w.verifyMap(ctx, cdapKey, all)
}

func (cdap) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return 0, nil, err
	}
	id, err = cdapClaim(ctx, client, c.namespace, c.deployment, c.pod.Name)
	return id, nil, err
}

func cdapClaim(ctx context.Context, client kubernetes.Interface, namespace, deployment, pod string) (int, error) {
	for {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		held, err := cdapHeld(d)
		if err != nil {
			return 0, err
		}
		id := cdapLowest(held, pod, int(*d.Spec.Replicas))
		if id < 0 {
			return 0, errCDAPFull
		}
		held[strconv.Itoa(id)] = pod
		text, err := json.Marshal(held)
		if err != nil {
			return 0, err
		}
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, cdapKey, string(text))
		if _, err = client.AppsV1().Deployments(namespace).Update(ctx, d, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return id, err
		}
	}
}

// cdapHeld returns which pod has which id.
func cdapHeld(d *appsv1.Deployment) (map[string]string, error) {
	held := map[string]string{}
	if text := d.Annotations[cdapKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &held); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", cdapKey, err)
		}
	}
	return held, nil
}

// cdapLowest returns the pod's id, or the lowest one that is free, or -1.
func cdapLowest(held map[string]string, pod string, count int) int {
	free := -1
	for id := count - 1; id >= 0; id-- {
		switch held[strconv.Itoa(id)] {
		case pod:
			return id
		case "":
			free = id
		}
	}
	return free
}
