package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// PolicyPasses returns a sentence if the policies exist, but a change that they forbid passes a dry run in the name of the pod: then they do not limit the
// pod's account. It returns "" if the change is refused, or if you may not impersonate the account.
func PolicyPasses(ctx context.Context, s *store.Store, pod *unstructured.Unstructured) string {
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	as, err := Pod{pod.GetNamespace(), pod.GetName(), string(pod.GetUID()), account}.As(s)
	if err != nil || dryRun(ctx, as, pod.GetNamespace(), Object{store.Pods, pod.GetName()}, `{"metadata":{"labels":{"example.com/idalloc-probe":"x"}}}`) != nil {
		return ""
	}
	return fmt.Sprintf("the admission policies do not limit service account %s: a dry run in its name changed a foreign label of pod %s. Either its Role lacks the mark "+
		"(verb allocate on slots.idalloc.dev), or a policy or its binding was changed: see docs/security.md", cmp.Or(account, "default"), pod.GetName())
}

// Pod is a pod and its service account.
type Pod struct{ Namespace, Name, UID, Account string }

// As returns a Store that sends its requests in the name of the pod. Errors: as of store.As.
func (p Pod) As(s *store.Store) (*store.Store, error) {
	return s.As("system:serviceaccount:"+p.Namespace+":"+cmp.Or(p.Account, "default"), map[string][]string{
		"authentication.kubernetes.io/pod-name": {p.Name}, "authentication.kubernetes.io/pod-uid": {p.UID},
	})
}

// Object names an object in the namespace of a Pod.
type Object struct {
	Resource schema.GroupVersionResource
	Name     string
}

func dryRun(ctx context.Context, s *store.Store, namespace string, o Object, patch string) error {
	_, err := s.Metadata.Resource(o.Resource).Namespace(namespace).Patch(ctx, o.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: assignment.FieldManager})
	return err
}

// WriteRefused returns the API server's message if admission refuses an update that changes nothing. Admission judges the whole object, so it also refuses
// idalloc's writes then. The update is a dry run in the name of the account that writes there for this pod, or in your name if you may not do that.
// WriteRefused returns "" if the update passes, or if you may not update the object. It blocks for up to three requests.
func WriteRefused(ctx context.Context, s *store.Store, pod Pod, byController bool, o Object) string {
	const nothing = "{}"
	as, err := pod.As(s)
	if byController {
		as, err = s.As(controllerOf(ctx, s, pod.Namespace), nil)
	}
	if err == nil {
		err = dryRun(ctx, as, pod.Namespace, o, nothing)
	}
	if request.ByRBAC(err) {
		err = dryRun(ctx, s, pod.Namespace, o, nothing)
	}
	var status apierrors.APIStatus
	if request.ByRBAC(err) || !isRefused(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Message
}

// PolicyMissing returns a sentence about what the cluster lacks of config/policy, and what to do. It returns "" if nothing is lacking, or if the API server
// does not answer. It blocks for up to six requests.
//
// config/policy lets all users read its policies. So a policy that may not be read counts as missing.
func PolicyMissing(ctx context.Context, s *store.Store) string {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	for _, name := range []string{"idalloc", "idalloc-leases", "idalloc-events"} {
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			o, err := s.Dynamic.Resource(group.WithResource(resource)).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return lacking(fmt.Sprintf("the cluster has no %s/%s", resource, name), "apply")
			case apierrors.IsForbidden(err):
				return fmt.Sprintf("you may not get %s/%s, so it cannot be told here whether an admission policy limits the tokens of pods: config/policy of this version lets "+
					"all users see it; let an administrator run kubectl apply -k config/policy", resource, name)
			case err != nil:
				return ""
			}
			if what := flaw(o, name, false); what != "" {
				return lacking(fmt.Sprintf("%s/%s %s", resource, name, what), "replace") // apply leaves what others added
			}
		}
	}
	return ""
}

func lacking(what, mend string) string {
	return fmt.Sprintf("%s, so no admission policy limits the tokens of pods: one that is stolen may change all pods of the namespace. Let an administrator run "+
		"kubectl %s -k config/policy", what, mend)
}

// flaw explains why a policy or a binding of this name does less than the one in config, or returns "". With tenant it may be limited to some namespaces.
func flaw(o *unstructured.Unstructured, name string, tenant bool) string {
	at := func(path ...string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return value
	}
	has := func(path ...string) bool { // the API server writes an empty selector as {}
		value := at(path...)
		return value != nil && fmt.Sprint(value) != "map[]" && fmt.Sprint(value) != "[]"
	}
	if o.GetKind() == "ValidatingAdmissionPolicy" {
		switch {
		case at("spec", "failurePolicy") == "Ignore":
			return "lets a request pass that it cannot judge (failurePolicy Ignore)"
		case has("spec", "matchConstraints", "namespaceSelector"), has("spec", "matchConstraints", "objectSelector"), has("spec", "matchConstraints", "excludeResourceRules"):
			return "leaves something out (matchConstraints)"
		}
		return ""
	}
	actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "validationActions")
	switch {
	case o.GetKind() == "ValidatingAdmissionPolicyBinding" && !slices.Contains(actions, "Deny"):
		return "lacks Deny in its validationActions"
	case at("spec", "policyName") != name:
		return fmt.Sprintf("is for policy %v", at("spec", "policyName"))
	// A mutating policy may be limited to some namespaces: in the others the validating policy refuses the pods.
	case has("spec", "matchResources", "namespaceSelector") && o.GetKind() != "MutatingAdmissionPolicyBinding" && !tenant, has("spec", "matchResources", "objectSelector"), has("spec", "matchResources", "resourceRules"),
		has("spec", "matchResources", "excludeResourceRules"), has("spec", "paramRef"):
		return "leaves something out (matchResources or paramRef)"
	}
	return ""
}
