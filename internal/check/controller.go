package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// controllerName is the name of the controller's Deployment and of its account, unless the chart's release has another name.
	controllerName = "idalloc-controller"
	// controllerNamespace is the namespace of config/controller.
	controllerNamespace = "idalloc-system"
)

// found is the controller that serves the namespace of the options.
type found struct {
	row Row
	// name is the name of its Deployment.
	name string
	// namespace and account are empty if there is no controller.
	namespace, account string
	// namespaces are the namespaces whose pods get ids. It is empty if all do.
	namespaces []string
	// injects is the name of the policies that inject sidecars.
	injects string
	// kinds are the values of the controller's flag --kind.
	kinds []string
}

// release is the prefix of the names of the controller's policies.
func (f found) release() string { return strings.TrimSuffix(f.name, "-controller") }

func (f found) serves(namespace string) bool {
	return len(f.namespaces) == 0 || slices.Contains(f.namespaces, namespace)
}

// controller finds the controller's Deployment in all namespaces. A cluster may have several, each for its own namespaces.
func (c *checker) controller(ctx context.Context) (found, error) {
	f := found{row: Row{Part: "controller"}, name: controllerName}
	all, err := c.deployments(ctx)
	switch {
	case apierrors.IsForbidden(err):
		f.row.State, f.row.Detail = Unknown, "you may not list deployments of all namespaces"
		return f, nil
	case err != nil:
		return f, fmt.Errorf("list deployments of all namespaces: %w", err)
	case len(all) == 0:
		f.row.State, f.row.Detail = Missing, "no Deployment "+controllerName+": install the chart, or kubectl apply -k config/controller. Peers (sidecars, linked programs) do not need it"
		return f, nil
	}
	var serving []*unstructured.Unstructured
	for k := range all {
		if foundAt(&all[k]).serves(c.Namespace) {
			serving = append(serving, &all[k])
		}
	}
	if len(serving) == 0 {
		f.row.State, f.row.Detail = Missing, fmt.Sprintf("%d give ids in other namespaces, and none in %s: name another namespace with -n, or add it to the chart's value controller.namespaces", len(all), c.Namespace)
		return f, nil
	}
	f = foundAt(serving[0])
	f.row = availability(serving[0], len(serving), c.Namespace)
	return f, nil
}

// availability returns the row of the controller. several is the number of controllers that serve the namespace.
func availability(d *unstructured.Unstructured, several int, namespace string) Row {
	want, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	available, _, _ := unstructured.NestedInt64(d.Object, "status", "availableReplicas")
	row := Row{"controller", InForce, fmt.Sprintf("%d of %d replicas are available in namespace %s, image %s", available, want, d.GetNamespace(), cmp.Or(image(d), "unknown"))}
	switch {
	case several > 1:
		row.State, row.Detail = Broken, fmt.Sprintf("%d Deployments of it give ids in namespace %s: leave one", several, namespace)
	case available == 0:
		row.State = Broken
		row.Detail += ": see kubectl -n " + d.GetNamespace() + " describe deployment " + d.GetName()
	}
	return row
}

// deployments returns all controllers of the cluster.
func (c *checker) deployments(ctx context.Context) ([]unstructured.Unstructured, error) {
	gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	all, err := c.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + controllerName})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// foundAt reads the settings from a Deployment of the controller.
func foundAt(d *unstructured.Unstructured) found {
	account, _, _ := unstructured.NestedString(d.Object, "spec", "template", "spec", "serviceAccountName")
	return found{
		name: d.GetName(), namespace: d.GetNamespace(), account: cmp.Or(account, "default"),
		namespaces: flags(d, "namespace"), kinds: flags(d, "kind"),
	}
}

// controllerOf returns the username of the controller that serves a namespace, or the default one if you may not see it.
func controllerOf(ctx context.Context, s *store.Store, namespace string) string {
	f, err := (&checker{Options{Dynamic: s.Dynamic, Namespace: namespace}}).controller(ctx)
	if err != nil || f.account == "" {
		f.namespace, f.account = controllerNamespace, controllerName
	}
	return "system:serviceaccount:" + f.namespace + ":" + f.account
}

// kinds checks whether the cluster has the kinds of the controller's flag --kind.
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

// flags returns the values of a flag in the controller's arguments.
func flags(d *unstructured.Unstructured, flag string) (all []string) {
	for _, c := range fields.Objects(d.Object, "spec", "template", "spec", "containers") {
		args, _, _ := unstructured.NestedStringSlice(c, "args")
		for _, arg := range args {
			if values, is := strings.CutPrefix(arg, "--"+flag+"="); is {
				all = append(all, strings.Split(values, ",")...)
			}
		}
	}
	return all
}

// ControllerMissing returns a sentence if no idalloc-controller works for a namespace. It returns "" if one does, or if you may not check that. It blocks for
// one request.
func ControllerMissing(ctx context.Context, s *store.Store, namespace string) string {
	c := checker{Options{Dynamic: s.Dynamic, Namespace: namespace}}
	f, err := c.controller(ctx)
	if err != nil || f.row.OK() {
		return ""
	}
	return fmt.Sprintf("pods for which the controller plans wait until it works, and it is %s: %s", f.row.State, f.row.Detail)
}

func image(d *unstructured.Unstructured) string {
	containers := fields.Objects(d.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	name, _ := containers[0]["image"].(string)
	return name
}

// Right is a permission in a namespace.
type Right struct{ Verb, Group, Resource, Subresource, Name string }

func (r Right) String() string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	return r.Verb + " " + strings.TrimSuffix(name+"/"+r.Subresource, "/")
}

// Granted asks the API server whether RBAC gives the right in a namespace to a service account, "NAMESPACE:NAME". For a local review you need a permission in
// that namespace alone.
func (r Right) Granted(ctx context.Context, client dynamic.Interface, local bool, namespace, account string) (bool, error) {
	kind, scope := "SubjectAccessReview", ""
	if local {
		kind, scope = "Local"+kind, namespace
	}
	of, _, _ := strings.Cut(account, ":")
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": kind,
		"spec": map[string]any{
			"user":   "system:serviceaccount:" + account,
			"groups": []any{"system:serviceaccounts", "system:serviceaccounts:" + of, "system:authenticated"},
			"resourceAttributes": map[string]any{
				"namespace": namespace, "verb": r.Verb, "group": r.Group, "resource": r.Resource, "subresource": r.Subresource, "name": r.Name,
			},
		},
	}}
	review.SetNamespace(scope)
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
	answer, err := client.Resource(reviews).Namespace(scope).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}

// needed returns the permissions without which pods wait.
func needed() []Right {
	var all []Right
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		all = append(all, Right{Verb: verb, Resource: "pods"})
		for _, k := range kinds.BuiltIn() {
			all = append(all, Right{Verb: verb, Group: k.Group, Resource: k.Resource})
		}
	}
	return append(all, Right{Verb: "delete", Resource: "pods"}, Right{Verb: "create", Resource: "pods", Subresource: "eviction"})
}

// rights checks the permissions of the controller's account in the namespace of the options.
func (c *checker) rights(ctx context.Context, f found) ([]Row, error) {
	if f.namespace == "" {
		return nil, nil
	}
	row := Row{Part: "controller's rights", State: InForce, Detail: "in namespace " + c.Namespace}
	lacks, unknown, err := c.lacks(ctx, f.namespace, f.account, needed())
	switch {
	case err != nil:
		return nil, err
	case unknown:
		row.State, row.Detail = Unknown, notToReview
	case len(lacks) > 0:
		row.State = Broken
		row.Detail = "in namespace " + c.Namespace + " it may not " + strings.Join(lacks, ", ") + ": install the chart again, or see its value controller.namespaces"
	}
	return []Row{row}, nil
}

const notToReview = "you may not create subjectaccessreviews"

// lacks returns the permissions that a service account lacks in the namespace of the options. unknown: you may not ask.
func (c *checker) lacks(ctx context.Context, namespace, account string, needed []Right) (lacks []string, unknown bool, err error) {
	for _, r := range needed {
		granted, err := r.Granted(ctx, c.Dynamic, false, c.Namespace, namespace+":"+account)
		switch {
		case apierrors.IsForbidden(err):
			return nil, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("ask what service account %s may do: %w", account, err)
		case !granted:
			lacks = append(lacks, r.String())
		}
	}
	return lacks, false, nil
}
