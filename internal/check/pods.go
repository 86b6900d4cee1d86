package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// verdict is the result of a dry run for a policy. yes: it is in force. no: the reason why not. If both are empty, it is not known.
type verdict struct {
	yes bool
	no  string
}

// trial are the results of the dry runs.
type trial struct {
	gated, refused, injectRefused verdict
	// untried is the reason why there is no result.
	untried string
}

// tryPods creates three pods in dry runs. The API server stores none.
func (c *checker) tryPods(ctx context.Context, f found) (trial, error) {
	var t trial
	pod, err := c.try(ctx, "idalloc.dev/assign", "controller")
	switch {
	case err == nil && receipt.Newer(pod.GetAnnotations()):
		t.gated = verdict{no: fmt.Sprintf("new pods get annotation %s: %s, and this program knows contracts up to %d: upgrade the controller, and this program",
			receipt.ContractKey, pod.GetAnnotations()[receipt.ContractKey], receipt.Contract)}
	case err == nil && hasGate(pod):
		t.gated = verdict{yes: true}
	case err == nil:
		t.gated = verdict{no: "a pod with label idalloc.dev/assign got no scheduling gate: pods would start without an id"}
	case isForbidden(err):
		t.untried = "you may not create pods in namespace " + c.Namespace + ", so it is not tried; name another one with -n"
		return t, nil
	case strings.Contains(err.Error(), "'"+f.release()+"-assign'"), strings.Contains(err.Error(), "failed calling webhook"), // no gate, which something refuses
		strings.Contains(err.Error(), "'idalloc-gate'") && f.serves(c.Namespace): // the chart's policy, which may be the first to refuse it
		t.gated = verdict{no: first(err)}
	case apierrors.IsNotFound(err), isRefused(err):
		t.untried = "namespace " + c.Namespace + " refuses the pod that would show it: " + first(err)
		return t, nil
	default:
		return t, fmt.Errorf("try a pod in namespace %s: %w", c.Namespace, err)
	}
	if t.refused, err = c.refuses(ctx, "idalloc.dev/assign", f.release()+"-assign"); err != nil {
		return t, err
	}
	t.injectRefused, err = c.refuses(ctx, "idalloc.dev/inject", f.injects)
	return t, err
}

// refuses tests whether a pod whose label has an invalid value is refused.
func (c *checker) refuses(ctx context.Context, label, policy string) (verdict, error) {
	_, err := c.try(ctx, label, "perhaps")
	switch {
	case err == nil:
		return verdict{no: "a pod with label " + label + ": perhaps was accepted: the policy is not in force in namespace " + c.Namespace}, nil
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"):
		return verdict{yes: true}, nil
	case isRefused(err):
		return verdict{}, nil // something else refused it first
	}
	return verdict{}, fmt.Errorf("try a pod in namespace %s: %w", c.Namespace, err)
}

// try creates a pod in a dry run. The pod meets the restricted pod security standard.
func (c *checker) try(ctx context.Context, label, value string) (*unstructured.Unstructured, error) {
	yes, no := true, false
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"spec": map[string]any{
			"automountServiceAccountToken": no,
			"securityContext":              map[string]any{"runAsNonRoot": yes, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			"containers": []any{map[string]any{
				"name": "check", "image": "example.com/check",
				"securityContext": map[string]any{"allowPrivilegeEscalation": no, "capabilities": map[string]any{"drop": []any{"ALL"}}},
				"resources":       map[string]any{"requests": small(), "limits": small()},
			}},
		},
	}}
	pod.SetGenerateName("idalloc-check-")
	pod.SetLabels(map[string]string{label: value})
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kinds.ReplicaSet, Name: "idalloc-check", UID: "00000000-0000-0000-0000-000000000000", Controller: &yes}})
	return c.Dynamic.Resource(store.Pods).Namespace(c.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func small() map[string]any { return map[string]any{"cpu": "1m", "memory": "1Mi"} }

func hasGate(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(fields.Objects(pod.Object, "spec", "schedulingGates"), func(g map[string]any) bool { return g["name"] == receipt.Gate })
}

// isForbidden reports whether RBAC refuses the request. Refusals by admission have the same status code.
func isForbidden(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
}

func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
