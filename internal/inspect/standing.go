package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// toldWithin is how long an Event of the controller is valid: while the cause persists, the controller repeats it after five minutes. clocksDiffer is how
	// much clocks may differ.
	toldWithin, clocksDiffer = 6 * time.Minute, time.Minute
	// reporter is the reporting component of idalloc's Events.
	reporter = "idalloc.dev/allocator"
	// podTooLarge is the reason of the controller's Event on a pod with an annotation that is too long.
	podTooLarge = "PodTooLarge"
	// writeRefused is the reason of its Event on a workload whose pods, or whose map, it cannot write.
	writeRefused = "WriteRefused"
	// restsReason is the reason of its Event on a workload one of whose ids rests.
	restsReason = "IDRests"
)

func events() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "events"}
}

// told is an Event in which the controller explains why pods of the owner get no ids.
type told struct {
	at      time.Time
	message string
	// refusal: the API server refuses writes. A dry run also finds that, unless it depends on the content, such as the size of a pod's annotations.
	refusal bool
}

// ownerReasons are the reasons of the controller's Events on a workload that say why pods have no ids.
func ownerReasons() []string { return []string{"RolloutWaits", "RemovalRefused", writeRefused} }

// readTold reads the controller's Events about the owner, and records which ids rest. It returns none if the controller has nothing to do for any pod, or
// without permission to read Events.
func (n *snapshot) readTold(ctx context.Context, s *store.Store) []told {
	f := factsOf(*n)
	due := func(p pod) bool {
		above := p.Receipt.Slot() >= n.owner.Count
		return p.byController && p.live() && (p.given == "" || above || f.behind(p))
	}
	if !slices.ContainsFunc(n.listed(), due) {
		return nil
	}
	newest := map[string]told{}
	o := metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(n.owner.UID)}
	err := s.EachObject(ctx, events(), n.owner.Namespace, o, func() {}, func(e *unstructured.Unstructured) {
		reason, _ := e.Object["reason"].(string)
		message, _ := e.Object["message"].(string)
		at, err := time.Parse(time.RFC3339, heardAt(e))
		ours := e.Object["reportingComponent"] == reporter && slices.Contains(ownerReasons(), reason)
		if e.Object["reportingComponent"] == reporter && reason == restsReason {
			n.rollout.rest(message)
		}
		if err == nil && ours && at.After(newest[reason].at) {
			newest[reason] = told{at, message, reason == writeRefused}
		}
	})
	if err != nil {
		return nil
	}
	all := n.tooLarge(ctx, s)
	for _, t := range newest {
		// If idalloc has written the workload since then, the rollout has continued.
		if n.now.Sub(t.at) <= toldWithin && (t.refusal || !n.written.After(t.at.Add(clocksDiffer))) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b told) int { return strings.Compare(a.message, b.message) })
	return all
}

// tooLarge reads the controller's Events about pods with an annotation that is too long. It returns none without permission to read Events.
func (n *snapshot) tooLarge(ctx context.Context, s *store.Store) (all []told) {
	o := metav1.ListOptions{FieldSelector: "reason=" + podTooLarge}
	_ = s.EachObject(ctx, events(), n.owner.Namespace, o, func() { all = nil }, func(e *unstructured.Unstructured) {
		of, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
		message, _ := e.Object["message"].(string)
		at, err := time.Parse(time.RFC3339, heardAt(e))
		p := n.pods[of["name"]]
		if err == nil && e.Object["reportingComponent"] == reporter && p.live() && p.UID == of["uid"] && p.given == "" && n.now.Sub(at) <= toldWithin {
			all = append(all, told{at, "pod " + p.Name + ": " + message, false})
		}
	})
	return all
}

func (n *snapshot) listed() (all []pod) {
	for _, p := range n.pods {
		all = append(all, p)
	}
	return all
}

// rollsByEvictions reports whether Kubernetes waits in a rolling update for new pods, so that the controller must remove old ones.
func (n *snapshot) rollsByEvictions() bool { return n.owner.Rolls() && n.owner.Rollout.Blocks() }

// replaces reports whether the controller evicts the pod when the count changes.
func (n *snapshot) replaces(p pod) bool {
	return p.onCount == assignment.OnCountReplace && !n.owner.Is(kinds.Job) && n.owner.Resource == ""
}

// readBudgets returns sentences about PodDisruptionBudgets that never let the controller evict a pod of the owner. It returns none without permission to list
// them.
func (n *snapshot) readBudgets(ctx context.Context, s *store.Store, whole *unstructured.Unstructured) []string {
	evicts := func(p pod) bool {
		return p.byController && (n.rollsByEvictions() || n.replaces(p))
	}
	if !slices.ContainsFunc(n.listed(), evicts) {
		return nil
	}
	of, _, _ := unstructured.NestedStringMap(whole.Object, "spec", "template", "metadata", "labels")
	var selecting, tight []string
	budgets := schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	err := s.EachObject(ctx, budgets, n.owner.Namespace, metav1.ListOptions{}, func() { selecting, tight = nil, nil }, func(u *unstructured.Unstructured) {
		var budget struct {
			Spec struct {
				Selector *metav1.LabelSelector `json:"selector"`
			} `json:"spec"`
			Status struct {
				DesiredHealthy int `json:"desiredHealthy"`
				ExpectedPods   int `json:"expectedPods"`
			} `json:"status"`
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &budget) != nil {
			return
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(of)) {
			return
		}
		selecting = append(selecting, u.GetName())
		is := budget.Status
		if is.ExpectedPods <= len(n.listed()) { // only this workload; during an update the pods that wait for ids are included
			is.ExpectedPods = min(is.ExpectedPods, n.owner.Count)
		}
		if is.ExpectedPods > 0 && is.DesiredHealthy >= is.ExpectedPods {
			tight = append(tight, fmt.Sprintf("PodDisruptionBudget %s wants %d of %d pods available", u.GetName(), is.DesiredHealthy, is.ExpectedPods))
		}
	})
	if err == nil && len(selecting) > 1 {
		tight = append(tight, "PodDisruptionBudgets "+few(selecting)+" select the same pods, and Kubernetes evicts none of such")
	}
	return tight
}

// standing finds what the controller reports about a stuck rolling update, and about writes that are refused if no dry run found it.
func standing(f *facts) (found []about) {
	for _, t := range f.rollout.told {
		if t.refusal && (len(f.refused) > 0 || f.mapRefused != "") {
			continue
		}
		found = append(found, about{with: words{"message": strings.TrimSuffix(t.message, "."), "since": f.now.Sub(t.at).Round(time.Second).String()}})
	}
	return found
}

// otherGates finds pods that have waited long behind gates other than idalloc's.
func otherGates(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		since := f.now.Sub(p.Created)
		return words{"gates": few(p.gates), "since": since.Round(time.Second).String()}, p.byController && p.gated && len(p.gates) > 0 && p.live() && since >= startsWithin
	})
}

// tightBudgets finds budgets that would block a rolling update, or the replacement of pods after a new count, for ever.
func tightBudgets(f *facts) (found []about) {
	does, or := "replaces pods of "+f.owner.String()+" by evictions when the count changes", "another value of annotation "+assignment.OnCountKey
	if f.rollsByEvictions() && !f.keepsAll() {
		does, or = "rolls "+f.owner.String()+" by evictions, because its maxUnavailable is 0", "maxUnavailable to 1 in the strategy"
	} else if len(f.those(f.replaces)) == 0 {
		return nil
	}
	for _, budget := range f.rollout.budgets {
		found = append(found, about{with: words{"budget": budget, "does": does, "or": or}})
	}
	return found
}
