package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const cdapKey = "cdap.instances.assignment"

var errCDAPFull = errors.New("live pods have all ids of the range")

// claimFromCDAP is the protocol that CDAP's "Instance ID generation in Kubernetes" describes: read the Deployment; take the lowest id below
// the number of replicas that the annotation does not have; replace the whole Deployment. A client that meets another write begins again
// at once. That it removes entries of pods that are gone is left out: here each pod finds room.
func claimFromCDAP(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return 0, nil, err
	}
	deployments := client.AppsV1().Deployments(c.Name)
	for {
		d, err := deployments.Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return 0, nil, err
		}
		held, err := mapOf(d, cdapKey)
		if err != nil {
			return 0, nil, err
		}
		id := cdapLowest(held, c.pod.Name, int(*d.Spec.Replicas))
		if id < 0 {
			return 0, nil, errCDAPFull
		}
		held[strconv.Itoa(id)] = c.pod.Name
		text, err := json.Marshal(held)
		if err != nil {
			return 0, nil, err
		}
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, cdapKey, string(text))
		if _, err = deployments.Update(ctx, d, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return id, nil, err
		}
	}
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
