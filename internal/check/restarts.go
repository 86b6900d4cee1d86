package check

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// restartFeature is the feature that kubelets declare if they can restart all containers of a pod.
const restartFeature = "RestartAllContainersOnContainerExits"

// restarts checks whether pods can restart when the count changes. The API server and the kubelets must know the restart rule. Pods wait for a node that does.
func (c *checker) restarts(ctx context.Context) (Row, error) {
	const use = "only for " + assignment.OnCountKey + ": " + assignment.OnCountRestart + ": "
	row := Row{Part: "restarts with the count", State: Absent}
	if c.old(restarting) {
		row.Detail = use + "the API server needs Kubernetes " + restarting
		return row, nil
	}
	nodes, err := c.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		row.State, row.Detail = Unknown, "you may not list nodes"
		return row, nil
	case err != nil:
		return row, fmt.Errorf("list nodes: %w", err)
	}
	var lack []string
	for _, node := range nodes.Items {
		features, _, _ := unstructured.NestedStringSlice(node.Object, "status", "declaredFeatures")
		if !slices.Contains(features, restartFeature) {
			lack = append(lack, node.GetName())
		}
	}
	if len(lack) > 0 {
		row.Detail = fmt.Sprintf(use+"%d of %d nodes, such as %s, do not declare feature %s, which kubelets have since %s; such pods wait for the others",
			len(lack), len(nodes.Items), lack[0], restartFeature, restarting)
		return row, nil
	}
	row.State, row.Detail = Installed, fmt.Sprintf("all %d nodes can restart the containers of a pod", len(nodes.Items))
	return row, nil
}
