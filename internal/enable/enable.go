// Package enable makes what a workload needs before idalloc can run in its pods: an account that may write idalloc's keys on this one workload, and the label
// and annotation in its pod template that bring the sidecar. It is for cmd/kubectl-idalloc.
package enable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// FieldManager is the field manager with which Plan's objects are applied.
const FieldManager = "kubectl-idalloc"

// Plan contains the objects to apply, in this order, and notes for the user.
type Plan struct {
	Objects []*unstructured.Unstructured
	Notes   []string
	// Account is the service account that gets the Role of this name.
	Account, Role string
	// PeersRole is the Role by which pods without the label of agents may write the workload. It is empty if the plan is not for agents.
	PeersRole string
}

// Options configures For.
type Options struct {
	// AccountOnly: do not change the pod template.
	AccountOnly bool
	// Strict: also permit what strict mode needs.
	Strict bool
	// By is how the pods get their ids: inject.BySidecar or inject.ByAgent. With ByAgent, idalloc-controller plans for the pods, so they need no permission on
	// the workload. If By is empty, the labels of the template decide.
	By string
}

func (o Options) agent() bool { return o.By == inject.ByAgent }

// For returns the plan for a workload. whole is the workload as read from the API server.
func For(ref kinds.Ref, whole *unstructured.Unstructured, o Options) (Plan, error) {
	name := accountName(ref)
	template, found, err := unstructured.NestedMap(whole.Object, "spec", "template")
	if !found { // also after an error
		return Plan{}, errors.Join(err, fmt.Errorf("%s in namespace %s has no pod template", ref, ref.Namespace))
	}
	if grace, set, _ := unstructured.NestedInt64(template, "spec", "terminationGracePeriodSeconds"); set && grace == 0 && !o.Strict {
		return Plan{}, fmt.Errorf("%s in namespace %s: %s (--strict)", ref, ref.Namespace, inject.NoGrace)
	}
	own, _, _ := unstructured.NestedString(template, "spec", "serviceAccountName")
	asked, _, _ := unstructured.NestedString(template, "metadata", "annotations", inject.AccountKey)
	if own == "default" {
		own = ""
	}
	account := cmp.Or(own, asked, name)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	assign := labels[inject.AssignLabel]
	if assign == inject.ByController && o.By != inject.ByAgent {
		return Plan{}, fmt.Errorf("%s in namespace %s: its pod template has label %s: %s, so its pods get their ids from the controller and need no account; "+
			"for a sidecar, remove the label first", ref, ref.Namespace, inject.AssignLabel, assign)
	}
	if o.By == "" && assign == inject.ByAgent {
		o.By = assign
	}
	p := Plan{Account: account, Role: name}
	if o.agent() {
		p.Role, p.PeersRole = name+"-agent", name // old pods need theirs until they are replaced
	}
	if account == name {
		p.Objects = append(p.Objects, serviceAccount(ref.Namespace, name))
	}
	p.Objects = append(p.Objects, role(ref, p.Role, o), binding(ref.Namespace, p.Role, account))
	marked := o.agent() == (assign == inject.ByAgent)
	switch {
	case o.AccountOnly || runs(template):
		p.Notes = append(p.Notes, changes(own, account, marked, o)...)
	case labels[inject.Label] == "true" && cmp.Or(own, asked) != "" && marked:
	case ref.Is(kinds.Job):
		p.Notes = append(p.Notes, fmt.Sprintf("a Job's pod template cannot be changed: create the Job with label %s and annotation %s: %s in its template", asks(o), inject.AccountKey, account))
	default:
		if p.Objects = append(p.Objects, marks(ref, own, account, o)); !marked && !o.agent() { // the API server removes the label if this command set it
			p.Notes = append(p.Notes, fmt.Sprintf("if you set label %s: %s yourself, remove it from the pod template: until then the controller plans", inject.AssignLabel, inject.ByAgent))
		}
	}
	return p, nil
}

// changes returns what to change in a pod template that this command leaves alone.
func changes(own, account string, marked bool, o Options) (notes []string) {
	if own != account {
		notes = append(notes, fmt.Sprintf("let the pods run as this account: set serviceAccountName: %s in the pod template", account))
	}
	if !marked {
		notes = append(notes, planners(o))
	}
	return notes
}

// planners returns what to change in the pod template, so that those plan that the options name.
func planners(o Options) string {
	if o.agent() {
		return fmt.Sprintf("let the controller plan for the pods: set label %s: %s in the pod template", inject.AssignLabel, inject.ByAgent)
	}
	return fmt.Sprintf("let the pods plan: remove label %s: %s from the pod template", inject.AssignLabel, inject.ByAgent)
}

// accountName returns the name of the account and the Role that For makes. It contains the kind, except for Deployments, because workloads of several kinds may
// have the same name.
func accountName(ref kinds.Ref) string {
	if ref.Is(kinds.Deployment) {
		return ref.Name + "-idalloc"
	}
	return ref.Name + "-" + strings.ToLower(ref.Kind) + "-idalloc"
}

// asks describes the labels that bring the sidecar.
func asks(o Options) string {
	text := inject.Label + ": \"true\""
	if o.agent() {
		text += ", label " + inject.AssignLabel + ": " + inject.ByAgent
	}
	return text
}

// runs reports whether the pod template has idalloc's container.
func runs(template map[string]any) bool {
	containers := append(fields.Objects(template, "spec", "initContainers"), fields.Objects(template, "spec", "containers")...)
	return slices.ContainsFunc(containers, func(c map[string]any) bool { return c["name"] == "idalloc" })
}

// marks returns the patch of the workload that brings the sidecar.
func marks(ref kinds.Ref, own, account string, o Options) *unstructured.Unstructured {
	labels := map[string]any{inject.Label: "true"}
	if o.agent() {
		labels[inject.AssignLabel] = inject.ByAgent
	}
	meta := map[string]any{"labels": labels}
	if own == "" {
		meta["annotations"] = map[string]any{inject.AccountKey: account}
	}
	return object(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name, nil, map[string]any{
		"spec": map[string]any{"template": map[string]any{"metadata": meta}},
	})
}

func serviceAccount(namespace, name string) *unstructured.Unstructured {
	return object("v1", "ServiceAccount", namespace, name, labels(), map[string]any{"automountServiceAccountToken": false})
}

// role returns a Role for the pods, with the permissions of config/base or config/agent and, for strict mode, of config/strict.
func role(ref kinds.Ref, name string, o Options) *unstructured.Unstructured {
	var rules []any
	if !o.agent() {
		rules = append(rules, rule(ref.GVR().Group, ref.GVR().Resource, ref.Name, "get", "list", "watch", "patch"))
	}
	if !o.agent() && ref.Rolls() {
		rules = append(rules, rule("apps", "replicasets", "", "get"))
	}
	rules = append(rules, rule("", "pods", "", "get", "list", "watch", "patch"))
	if !o.agent() {
		rules = append(rules, rule("", "events", "", "create"))
	}
	rules = append(rules, rule("idalloc.dev", "slots", "", "allocate"))
	// If the label is a hash, or the Lease belongs to a pod that may not patch the workload, the policy cannot tell which workload owns it.
	if label := assignment.OwnerLabelValue(ref.String()); !strings.Contains(label, ".") || o.agent() && o.Strict {
		rules = append(rules, rule("idalloc.dev", "slots", label, "lock"))
	}
	if o.Strict {
		leases := slotlease.Resource
		rules = append(rules, rule(leases.Group, leases.Resource, "", "get", "list", "watch", "create", "update", "delete"))
	}
	return object(rbac+"/v1", "Role", ref.Namespace, name, labels(), map[string]any{"rules": rules})
}

const rbac = "rbac.authorization.k8s.io"

func rule(group, resource, name string, verbs ...any) map[string]any {
	r := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
	if name != "" {
		r["resourceNames"] = []any{name}
	}
	return r
}

func binding(namespace, name, account string) *unstructured.Unstructured {
	return object(rbac+"/v1", "RoleBinding", namespace, name, labels(), map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbac, "kind": "Role", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace}},
	})
}

func labels() map[string]any { return map[string]any{"app.kubernetes.io/name": "idalloc"} }

func object(apiVersion, kind, namespace, name string, labels, rest map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name, "namespace": namespace}
	if labels != nil {
		meta["labels"] = labels
	}
	all := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	maps.Copy(all, rest)
	return &unstructured.Unstructured{Object: all}
}
