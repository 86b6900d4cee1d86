package store

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Ref names an owner: an object of one of the four kinds that can carry an assignment.
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
}

// String returns "Deployment/worker".
func (r Ref) String() string { return r.Kind + "/" + r.Name }

// Owner returns r as the workload sees it.
func (r Ref) Owner() identity.Owner {
	return identity.Owner{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

// GVR returns the resource of r's kind.
func (r Ref) GVR() schema.GroupVersionResource {
	k := kinds[r.Kind]
	return schema.GroupVersionResource{Group: k.group, Version: "v1", Resource: k.resource}
}

// Kinds that can be owners.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	ReplicaSet  = "ReplicaSet"
	Job         = "Job"
)

type kind struct {
	group, resource string
	short           []string
}

var kinds = map[string]kind{ //nolint:gochecknoglobals // a constant that Go cannot express
	Deployment:  {group: "apps", resource: "deployments", short: []string{"deploy"}},
	StatefulSet: {group: "apps", resource: "statefulsets", short: []string{"sts"}},
	ReplicaSet:  {group: "apps", resource: "replicasets", short: []string{"rs"}},
	Job:         {group: "batch", resource: "jobs"},
}

// NewRef returns the Ref of an object by its apiVersion and kind; ok is false for a kind that cannot be an owner.
func NewRef(apiVersion, kindName, namespace, name string) (ref Ref, ok bool) {
	k, ok := kinds[kindName]
	if !ok || apiVersion != k.group+"/v1" {
		return Ref{}, false
	}
	return Ref{APIVersion: apiVersion, Kind: kindName, Namespace: namespace, Name: name}, true
}

// ParseRef reads KIND/NAME as kubectl takes it: deployment/worker, deploy/worker, deployments.apps/worker.
func ParseRef(text, namespace string) (Ref, error) {
	kindName, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("idalloc: %q is not KIND/NAME: write for example deployment/worker", text)
	}
	word, group, _ := strings.Cut(strings.ToLower(kindName), ".")
	group = strings.TrimPrefix(group, "v1.")
	for full, k := range kinds {
		names := append([]string{strings.ToLower(full), k.resource}, k.short...)
		for _, n := range names {
			if n == word && (group == "" || group == k.group) {
				return Ref{APIVersion: k.group + "/v1", Kind: full, Namespace: namespace, Name: name}, nil
			}
		}
	}
	return Ref{}, fmt.Errorf("idalloc: %q cannot carry an assignment: use a deployment, statefulset, replicaset or job", kindName)
}
