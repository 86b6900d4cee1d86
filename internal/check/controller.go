package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// controllerName is that of the controller's Deployment and of its account.
const controllerName = "idalloc-controller"

type found struct {
	row Row
	// namespace is empty if there is no controller.
	namespace string
	// kinds are the further ones that it is told to serve.
	kinds []string
}

// controller looks for the controller's Deployment in all namespaces.
func (c *checker) controller(ctx context.Context) (found, error) {
	f := found{row: Row{Part: "controller"}}
	deployments := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	all, err := deployments.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=idalloc-controller"})
	switch {
	case apierrors.IsForbidden(err):
		f.row.State, f.row.Detail = Unknown, "you may not list deployments of all namespaces"
		return f, nil
	case err != nil:
		return f, fmt.Errorf("list deployments of all namespaces: %w", err)
	case len(all.Items) == 0:
		f.row.State, f.row.Detail = Missing, "no Deployment "+controllerName+": install the chart, or kubectl apply -k config/controller. Peers (sidecars, linked programs) do not need it"
		return f, nil
	}
	d := &all.Items[0]
	f.namespace, f.kinds = d.GetNamespace(), kindsOf(d)
	want, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	available, _, _ := unstructured.NestedInt64(d.Object, "status", "availableReplicas")
	f.row.Detail = fmt.Sprintf("%d of %d replicas are available in namespace %s, image %s", available, want, f.namespace, cmp.Or(image(d), "unknown"))
	switch {
	case len(all.Items) > 1:
		f.row.State, f.row.Detail = Broken, fmt.Sprintf("there are %d Deployments of it: remove all but one", len(all.Items))
	case available == 0:
		f.row.State = Broken
		f.row.Detail += ": see kubectl -n " + f.namespace + " describe deployment " + d.GetName()
	default:
		f.row.State = InForce
	}
	return f, nil
}

// kinds looks for the further kinds that the controller is told to serve.
func (c *checker) kinds(ctx context.Context, f found) (rows []Row, err error) {
	definitions := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, kind := range f.kinds {
		row := Row{Part: "kind " + kind, State: InForce}
		_, err := definitions.Get(ctx, kind, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			row.State = Missing
			row.Detail = "the cluster has no such kind, and pods of it get no ids: install it, or take it out of the chart's value controller.kinds"
		case apierrors.IsForbidden(err):
			row.State, row.Detail = Unknown, "you may not get customresourcedefinitions"
		case err != nil:
			return nil, fmt.Errorf("get the definition of kind %s: %w", kind, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// kindsOf returns the kinds in the arguments of the controller.
func kindsOf(d *unstructured.Unstructured) (kinds []string) {
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		m, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(m, "args")
		for _, arg := range args {
			if names, is := strings.CutPrefix(arg, "--kind="); is {
				kinds = append(kinds, strings.Split(names, ",")...)
			}
		}
	}
	return kinds
}

// ControllerMissing returns a sentence if no idalloc-controller works in the cluster. It is empty if one does, or if you may not look. It blocks for a
// request.
func ControllerMissing(ctx context.Context, s *store.Store) string {
	c := checker{Options{Dynamic: s.Dynamic}}
	f, err := c.controller(ctx)
	if err != nil || f.row.OK() {
		return ""
	}
	return fmt.Sprintf("pods for which the controller plans wait until it works, and it is %s: %s", f.row.State, f.row.Detail)
}

func image(d *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	name, _ := first["image"].(string)
	return name
}

// right is a request that the controller or an agent sends.
type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	name := r.resource
	if r.group != "" {
		name += "." + r.group
	}
	return r.verb + " " + strings.TrimSuffix(name+"/"+r.subresource, "/")
}

// needed are the rights without which pods wait.
func needed() []right {
	var all []right
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		all = append(all, right{verb: verb, resource: "pods"}, right{verb: verb, group: "apps", resource: "deployments"},
			right{verb: verb, group: "apps", resource: "statefulsets"}, right{verb: verb, group: "apps", resource: "replicasets"},
			right{verb: verb, group: "batch", resource: "jobs"})
	}
	return append(all, right{verb: "delete", resource: "pods"}, right{verb: "create", resource: "pods", subresource: "eviction"})
}

// rights asks what the controller's account may do in the namespace of the options.
func (c *checker) rights(ctx context.Context, f found) ([]Row, error) {
	if f.namespace == "" {
		return nil, nil
	}
	row := Row{Part: "controller's rights", State: InForce, Detail: "in namespace " + c.Namespace}
	lacks, unknown, err := c.lacks(ctx, f.namespace, controllerName, needed())
	switch {
	case err != nil:
		return nil, err
	case unknown:
		row.State, row.Detail = Unknown, notToReview
	case len(lacks) > 0:
		row.State = Broken
		row.Detail = "in namespace " + c.Namespace + " it may not " + strings.Join(lacks, ", ") + ": install the chart again, or see its value controller.namespace"
	}
	return []Row{row}, nil
}

const notToReview = "you may not create subjectaccessreviews"

// lacks returns which of these rights a service account does not have in the namespace of the options. unknown says that this account may not ask.
func (c *checker) lacks(ctx context.Context, namespace, account string, needed []right) (lacks []string, unknown bool, err error) {
	reviews := c.Dynamic.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	for _, r := range needed {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user":   "system:serviceaccount:" + namespace + ":" + account,
				"groups": []any{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				"resourceAttributes": map[string]any{
					"namespace": c.Namespace, "verb": r.verb, "group": r.group, "resource": r.resource, "subresource": r.subresource,
				},
			},
		}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("ask what service account %s may do: %w", account, err)
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			lacks = append(lacks, r.String())
		}
	}
	return lacks, false, nil
}
