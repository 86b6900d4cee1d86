package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// permissions returns the permissions that idalloc in a pod of an owner needs to get an id. An agent needs none on the owner.
func permissions(owner kinds.Ref, p pod) []check.Right {
	var all []check.Right
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		if !p.byAgent {
			all = append(all, check.Right{Verb: verb, Group: owner.GVR().Group, Resource: owner.GVR().Resource, Name: owner.Name})
		}
		all = append(all, check.Right{Verb: verb, Resource: "pods"})
	}
	if owner.Rolls() && !p.byAgent {
		all = append(all, check.Right{Verb: "get", Group: "apps", Resource: "replicasets"})
	}
	if p.Receipt.Strict {
		for _, verb := range []string{"get", "list", "create", "update", "delete"} {
			all = append(all, check.Right{Verb: verb, Group: slotlease.Resource.Group, Resource: slotlease.Resource.Resource})
		}
	}
	return all
}

// missing returns a sentence about the permissions that the pod's service account lacks. It returns none if it may not ask the API server.
func missing(ctx context.Context, s *store.Store, whole *unstructured.Unstructured, owner kinds.Ref, of pod) []string {
	account, _, _ := unstructured.NestedString(whole.Object, "spec", "serviceAccountName")
	account = cmp.Or(account, "default")
	var lacks []string
	for _, p := range permissions(owner, of) {
		granted, err := p.Granted(ctx, s.Dynamic, true, owner.Namespace, owner.Namespace+":"+account)
		switch {
		case err != nil:
			return nil
		case !granted:
			lacks = append(lacks, p.Verb+" "+strings.TrimSuffix(p.Resource+"/"+p.Name, "/"))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the pod's service account %s may not: %s; idalloc in the pod needs that, so bind a Role that permits it (kubectl idalloc enable %s/%s -n %s%s%s makes one)",
		account, strings.Join(lacks, ", "), strings.ToLower(owner.Kind), owner.Name, owner.Namespace, map[bool]string{true: " --by=agent"}[of.byAgent], map[bool]string{true: " --strict"}[of.Receipt.Strict])}
}

// podReasons are the reasons of idalloc's Events about a pod that say why it has no id.
func podReasons() []string {
	return []string{"WaitingForSlot", "IDLost", "GateMissing", "ContractUnknown", "NumberInvalid", "RenewalRefused", writeRefused, podTooLarge, otherGatesReason}
}

// otherGatesReason is the reason of the controller's Event on a pod that other scheduling gates hold. It is out of date once they are gone.
const otherGatesReason = "OtherGates"

// Reasons returns the reasons of the Events that explain and verify read: those on pods, and those on workloads. A test finds those that no code writes.
func Reasons() (onPods, onWorkloads []string) {
	return podReasons(), append(ownerReasons(), restsReason)
}

// said returns the last Event of idalloc about the pod. It returns none without permission to read Events.
func said(ctx context.Context, s *store.Store, pod *unstructured.Unstructured) []string {
	var at, message string
	reasons := podReasons()
	if len(assignedOf(pod).gates) == 0 {
		reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == otherGatesReason })
	}
	o := metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.GetUID())}
	err := s.EachObject(ctx, events(), pod.GetNamespace(), o, func() {}, func(e *unstructured.Unstructured) {
		reason, _ := e.Object["reason"].(string)
		if slices.Contains(reasons, reason) && heardAt(e) >= at {
			at, message = heardAt(e), fmt.Sprint(e.Object["message"])
		}
	})
	if err != nil || at == "" {
		return nil
	}
	return []string{fmt.Sprintf("an Event of idalloc at %s: %s", at, message)}
}

// heardAt returns the time of an Event in its stored form, in UTC.
func heardAt(e *unstructured.Unstructured) string {
	for _, key := range []string{"lastTimestamp", "eventTime", "firstTimestamp"} {
		if at, ok := e.Object[key].(string); ok && at != "" {
			return at
		}
	}
	return e.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")
}
