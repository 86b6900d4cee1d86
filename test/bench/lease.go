package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// lease is one Lease object per slot: create the one of a random slot; where it is there already, try
// the next slot. Nothing frees a Lease here, and nothing says how many slots there are.
type lease struct{}

func (lease) name() string { return "lease" }

func (lease) prepare(context.Context, *workload) error { return nil }

func (lease) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return 0, nil, err
	}
	leases := client.CoordinationV1().Leases(c.namespace)
	first := rand.IntN(c.n) //nolint:gosec // no secret
	for i := range c.n {
		slot := (first + i) % c.n
		_, err := leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: leaseName(slot)},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &c.pod.Name},
		}, metav1.CreateOptions{})
		if err == nil {
			return slot, nil, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("all %d leases were there already", c.n)
}

func leaseName(slot int) string { return "slot-" + strconv.Itoa(slot) }

func (lease) verify(ctx context.Context, w *workload, all []claimed) error {
	list, err := w.env.Client.CoordinationV1().Leases(w.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	holders := map[string]string{}
	for _, l := range list.Items {
		if l.Spec.HolderIdentity != nil {
			holders[l.Name] = *l.Spec.HolderIdentity
		}
	}
	owner := map[string]string{}
	for slot := range all {
		if holder := holders[leaseName(slot)]; holder != "" {
			owner[strconv.Itoa(slot)] = holder
		}
	}
	return verify(all, owner)
}
