package main

import (
	"context"

	"k8s.io/client-go/rest"
)

// claimant is one pod that wants an id.
type claimant struct {
	namespace, deployment, pod string
	// config reaches the API server with the pod's own connection.
	config *rest.Config
}

// protocol is a way for pods to share out ids by means of their Deployment.
type protocol interface {
	name() string
	// key is the annotation of the Deployment that says who has what: a JSON object, id to pod.
	key() string
	// claim blocks until the pod has an id. leave ends whatever runs on for the pod, without giving
	// the id back.
	claim(ctx context.Context, c claimant) (id int, leave func(), err error)
}
