package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// agents checks the permissions of the agents' accounts in the namespace of the options.
func (c *checker) agents(ctx context.Context) (Row, error) {
	const label = receipt.AssignLabel + "=" + receipt.ByAgent
	row := Row{Part: "agents' rights"}
	pods, err := c.Dynamic.Resource(store.Pods).Namespace(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	switch {
	case apierrors.IsForbidden(err):
		row.State, row.Detail = Unknown, "you may not list pods in namespace "+c.Namespace
		return row, nil
	case err != nil:
		return row, fmt.Errorf("list the pods with label %s in namespace %s: %w", label, c.Namespace, err)
	case len(pods.Items) == 0:
		row.State, row.Detail = Absent, "no pod in namespace "+c.Namespace+" has label "+label+": kubectl idalloc enable KIND/NAME --by=agent"
		return row, nil
	}
	accounts := map[string]bool{}
	for _, pod := range pods.Items {
		account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
		accounts[cmp.Or(account, "default")] = true
	}
	names := slices.Sorted(maps.Keys(accounts))
	row.State, row.Detail = InForce, fmt.Sprintf("%d pods in namespace %s, service account %s", len(pods.Items), c.Namespace, strings.Join(names, ", "))
	needed := []Right{
		{Verb: "get", Resource: "pods"}, {Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"}, {Verb: "patch", Resource: "pods"},
		{Verb: "allocate", Group: "idalloc.dev", Resource: "slots"},
	}
	for _, name := range names {
		lacks, unknown, err := c.lacks(ctx, c.Namespace, name, needed)
		switch {
		case err != nil:
			return row, err
		case unknown:
			row.State, row.Detail = Unknown, notToReview
			return row, nil
		case len(lacks) > 0:
			row.State = Broken
			row.Detail = fmt.Sprintf("service account %s in namespace %s may not %s: kubectl idalloc enable KIND/NAME --by=agent, or kubectl apply -k config/agent",
				name, c.Namespace, strings.Join(lacks, ", "))
			return row, nil
		}
	}
	return row, nil
}
