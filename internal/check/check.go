package check

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// State is the state of a part.
type State string

// The states. An administrator must fix a part that is Missing or Broken.
const (
	// InForce: a dry run or the part itself shows that it works.
	InForce State = "in force"
	// Installed: it exists, but this account may not test it.
	Installed State = "installed"
	// Missing: it does not exist.
	Missing State = "missing"
	// Broken: it exists but does not work.
	Broken State = "broken"
	// Absent: it does not exist, and only the use that the row names needs it.
	Absent State = "absent"
	// Unknown: this account may not read it.
	Unknown State = "unknown"
)

// Row is the result for one part.
type Row struct {
	Part   string `json:"part"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// OK reports whether an administrator has nothing to fix.
func (r Row) OK() bool { return r.State != Missing && r.State != Broken }

// Options configures Cluster.
type Options struct {
	Dynamic dynamic.Interface
	// Server is the version of the API server, such as v1.36.3.
	Server string
	// Namespace is where dry runs create pods.
	Namespace string
}

// Versions of Kubernetes. test/pages compares the first three with hack/controlplane/minors.
const (
	// oldest is the oldest version on which idalloc is tested. It has validating policies.
	oldest = "1.30"
	// mutating is the oldest version with mutating policies.
	mutating = "1.36"
	// untested is the first version on which idalloc is not tested.
	untested = "1.38"
	// restarting is the oldest version whose kubelets can restart all containers of a pod.
	restarting = "1.36"
)

// Cluster checks all parts. It blocks for about forty requests. It returns an error if a request gets no answer.
func Cluster(ctx context.Context, o Options) ([]Row, error) {
	c := checker{Options: o}
	server := c.server()
	controller, err := c.controller(ctx)
	if err != nil {
		return nil, err
	}
	if controller.injects, err = c.injects(ctx, controller); err != nil {
		return nil, err
	}
	pods, err := c.tryPods(ctx, controller)
	if err != nil {
		return nil, err
	}
	numbers, err := c.numbers(ctx)
	if err != nil {
		return nil, err
	}
	rows := []Row{server, numbers}
	for _, p := range policies(controller) {
		row, err := c.policy(ctx, p, pods)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	kinds, err := c.kinds(ctx, controller)
	if err != nil {
		return nil, err
	}
	rows = append(append(rows, controller.row), kinds...)
	restarts, err := c.restarts(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, restarts)
	rights, err := c.rights(ctx, controller)
	if err != nil {
		return nil, err
	}
	agents, err := c.agents(ctx)
	return append(append(rows, rights...), agents), err
}

type checker struct{ Options }

// old reports whether the server is older than a version.
func (c *checker) old(than string) bool {
	v, err := version.ParseGeneric(c.Server)
	return err == nil && v.LessThan(version.MustParseGeneric(than))
}

func (c *checker) server() Row {
	row := Row{"Kubernetes", InForce, c.Server}
	switch {
	case c.old(oldest):
		row.State, row.Detail = Broken, c.Server+": idalloc needs "+oldest+" or later"
	case c.old(mutating):
		row.Detail += ": before " + mutating + " a webhook completes pods, or kubectl idalloc inject"
	case c.Server != "" && !c.old(untested):
		row.Detail += ": idalloc is not tested on " + untested + " or later"
	}
	return row
}

// numbers checks one resourceVersion of the server, because fencing tokens come from these. It cannot tell whether two writes get the same number.
func (c *checker) numbers(ctx context.Context) (Row, error) {
	row := Row{Part: "fencing tokens"}
	pods, err := c.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(c.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		row.State, row.Detail = Unknown, "you may not list pods"
		return row, nil
	case err != nil:
		return row, fmt.Errorf("list pods in namespace %s: %w", c.Namespace, err)
	}
	token, err := receipt.TokenOf(pods.GetResourceVersion())
	switch {
	case err != nil:
		row.State, row.Detail = Broken, err.Error()
	case token >= exact:
		row.State, row.Detail = InForce, fmt.Sprintf("now at %d, which a float64 rounds: programs read tokenText or the file token", token)
	default:
		row.State, row.Detail = InForce, fmt.Sprintf("now at %d", token)
	}
	return row, nil
}

// exact is 2^53: above it a float64 rounds some integers.
const exact = 1 << 53

// policy is a policy and its binding, two objects of admissionregistration.k8s.io.
type policy struct {
	name     string
	mutating bool
	// webhook is the name of the webhook that may replace a mutating policy.
	webhook string
	// absent says what needs the policy, and how to get it. It is empty if every installation needs it.
	absent string
	// folder is the folder of config that contains it. It is empty if the chart alone has it.
	folder string
	// tenant: it may be limited to some namespaces.
	tenant bool
	// tried returns the result of the dry run that shows whether it is in force.
	tried func(trial) verdict
}

// policies returns the policies that every cluster has, and those of a controller, which have the name of its release.
func policies(f found) []policy {
	const inject = "only for sidecars by label: kubectl apply -k config/inject"
	assign, tenant := f.release()+"-assign", len(f.namespaces) > 0
	const gate = "the chart alone has it: without it, pods that ask for an id start without one once the controller's policies are removed"
	return []policy{
		{name: "idalloc", folder: "policy"},
		{name: "idalloc-leases", folder: "policy"},
		{name: "idalloc-events", folder: "policy"},
		{name: assign, mutating: true, webhook: f.release() + "-webhook", folder: "assign", tenant: tenant, tried: func(t trial) verdict { return t.gated }},
		{name: assign, folder: "assign", tenant: tenant, tried: func(t trial) verdict { return t.refused }},
		{name: f.name, folder: "assign"},
		{name: "idalloc-gate", absent: gate},
		{name: f.injects, mutating: true, webhook: f.release() + "-webhook", folder: "inject", absent: inject, tenant: tenant},
		{name: f.injects, folder: "inject", absent: inject, tried: func(t trial) verdict { return t.injectRefused }},
	}
}

// sidecars is the name of the policies that inject sidecars in all namespaces.
const sidecars = "idalloc-inject"

// injects returns the name of the policies that inject sidecars in the namespace of the options. A release for some namespaces may have its own.
func (c *checker) injects(ctx context.Context, f found) (string, error) {
	own := f.release() + "-inject"
	if len(f.namespaces) == 0 || own == sidecars {
		return sidecars, nil
	}
	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	switch _, err := c.Dynamic.Resource(gvr).Get(ctx, own, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return sidecars, nil
	case err != nil && !apierrors.IsForbidden(err):
		return "", fmt.Errorf("get %s/%s: %w", gvr.Resource, own, err)
	}
	return own, nil
}

func (p policy) part() string {
	if p.mutating {
		return "mutating policy " + p.name
	}
	return "policy " + p.name
}

// unseen: there may be a webhook in place of a mutating policy.
const unseen = "you may not list mutatingwebhookconfigurations, so it is not known whether a webhook completes pods"

// policy checks a policy and its binding, and the dry run that shows whether it is in force.
func (c *checker) policy(ctx context.Context, p policy, t trial) (Row, error) {
	row, hidden, done, err := c.mutated(ctx, p, t)
	if err != nil || done {
		return row, err
	}
	kind := "validatingadmissionpolic"
	if p.mutating {
		kind = "mutatingadmissionpolic"
	}
	resources, narrowed := []string{kind + "ies", kind + "ybindings"}, false
	for k, resource := range resources {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		object, err := c.Dynamic.Resource(gvr).Get(ctx, p.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && hidden && k == 0:
			row.State, row.Detail = Unknown, unseen
			return c.judged(row, p, t, false), nil
		case apierrors.IsNotFound(err) && p.absent != "" && k == 0:
			row.State, row.Detail = Absent, p.absent
			return row, nil
		case apierrors.IsNotFound(err):
			row.State, row.Detail = Missing, fmt.Sprintf("no %s/%s: install the chart", resource, p.name)
			if p.folder != "" {
				row.Detail += ", or kubectl apply -k config/" + p.folder
			}
			return row, nil
		case apierrors.IsForbidden(err):
			row.State, row.Detail = Unknown, "you may not get "+resource
		case err != nil:
			return row, fmt.Errorf("get %s/%s: %w", resource, p.name, err)
		case k == 1:
			if why := flaw(object, p.name, p.tenant); why != "" {
				row.State, row.Detail = Broken, resource+"/"+p.name+" "+why
				return row, nil
			}
			selector, _, _ := unstructured.NestedMap(object.Object, "spec", "matchResources", "namespaceSelector")
			narrowed = len(selector) > 0
		}
	}
	if row.State == "" {
		row.State = Installed
	}
	return c.judged(row, p, t, narrowed), nil
}

// mutated looks at what a mutating policy has in place of itself: a webhook, or nothing on an old API server. done: there is no policy to look for. hidden: you
// may not list webhooks.
func (c *checker) mutated(ctx context.Context, p policy, t trial) (row Row, hidden, done bool, err error) {
	if row.Part = p.part(); !p.mutating {
		return row, false, false, nil
	}
	hook, err := c.webhook(ctx, p.webhook)
	hidden = apierrors.IsForbidden(err)
	switch {
	case err != nil && !hidden:
		return row, hidden, true, fmt.Errorf("list webhooks: %w", err)
	case hook != "":
		row.State, row.Detail = Installed, "the webhook "+hook+" does it"
		return c.judged(row, p, t, false), hidden, true, nil
	case c.old(mutating) && hidden:
		row.State, row.Detail = Unknown, unseen
		return c.judged(row, p, t, false), hidden, true, nil
	case c.old(mutating):
		row.State, row.Detail = Absent, "needs Kubernetes "+mutating+", or the webhook (config/webhook); or use kubectl idalloc inject"
		return row, hidden, true, nil
	}
	return row, hidden, false, nil
}

// judged adds the result of the dry run to a row.
func (c *checker) judged(row Row, p policy, t trial, narrowed bool) Row {
	if p.tried == nil {
		return row
	}
	switch v := p.tried(t); {
	case v.yes:
		row.State, row.Detail = InForce, "a dry run in namespace "+c.Namespace+" shows it"
	case v.no != "" && narrowed:
		row.Detail = "for some namespaces only (namespaceSelector of its binding), and not for " + c.Namespace
	case v.no != "":
		row.State, row.Detail = Broken, v.no
	case row.Detail == "":
		row.Detail = t.untried
	}
	return row
}

// webhook returns the name of the webhook that replaces the mutating policies, or "" if there is none. If there are several, it prefers own, the webhook of the
// controller that serves the namespace. Its error is the API server's.
func (c *checker) webhook(ctx context.Context, own string) (string, error) {
	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	all, err := c.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + controllerName})
	if err != nil || len(all.Items) == 0 {
		return "", err
	}
	for _, hook := range all.Items {
		if hook.GetName() == own {
			return own, nil
		}
	}
	return all.Items[0].GetName(), nil
}

// BrokenParts returns the parts that an administrator must fix.
func BrokenParts(rows []Row) []string {
	var parts []string
	for _, r := range rows {
		if !r.OK() {
			parts = append(parts, r.Part)
		}
	}
	return parts
}

// first returns the first line of an error.
func first(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
