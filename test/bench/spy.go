package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// ownerEvent is what a bare watch reads of an event of a Deployment.
type ownerEvent struct {
	Type   string `json:"type"`
	Object struct {
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
	} `json:"object"`
}

// bareWatch follows the Deployment in a goroutine that ends with ctx, and tells see of each event: the
// API server's own latency, with as little around it as can be. It returns when the watch stands.
func (w *workload) bareWatch(ctx context.Context, config *rest.Config, see func(at time.Time, replicas int)) (done <-chan error, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	d, err := client.AppsV1().Deployments(w.Name).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	stream, err := client.AppsV1().RESTClient().Get().Namespace(w.Name).Resource("deployments").VersionedParams(&metav1.ListOptions{
		Watch: true, ResourceVersion: d.ResourceVersion, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, deployment).String(),
	}, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch of the Deployment: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = stream.Close() }()
		events := json.NewDecoder(stream)
		for {
			var e ownerEvent
			if err := events.Decode(&e); err != nil {
				if ctx.Err() != nil || errors.Is(err, io.EOF) {
					err = nil
				}
				ended <- err
				return
			}
			see(time.Now(), e.Object.Spec.Replicas)
		}
	}()
	return ended, nil
}
