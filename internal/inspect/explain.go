package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/fields"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Explanation describes how far a pod is on its way to an id.
type Explanation struct {
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	// Owner is the pod's workload, empty if the pod has none that gives ids.
	Owner string `json:"owner,omitempty"`
	// ID is the pod's id, or nil.
	ID *int `json:"id,omitempty"`
	// Verdict is a sentence: the pod has an id, waits for one, or gets none.
	Verdict string `json:"verdict"`
	// Reasons are sentences: what the pod waits for, and what to do about it.
	Reasons []string `json:"reasons"`
}

// Explain explains why a pod has no id, from the state of the pod and its workload at the API server. further names further kinds of workloads, such as
// "rollouts.argoproj.io". It writes nothing. Errors: as of Verify.
func Explain(ctx context.Context, s *store.Store, namespace, name string, further ...string) (Explanation, error) {
	whole, err := s.GetFullPod(ctx, namespace, name)
	if err != nil {
		return Explanation{}, err
	}
	var meta metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": whole.Object["metadata"]}, &meta); err != nil {
		return Explanation{}, fmt.Errorf("pod %s: %w", name, err)
	}
	all, err := s.Further(ctx, further...)
	if err != nil {
		return Explanation{}, err
	}
	ref, err := watch.Resolve(ctx, s, &meta, all...)
	if errors.Is(err, watch.ErrNoController) || errors.Is(err, watch.ErrUnknownOwner) {
		return Explanation{Pod: name, Namespace: namespace, Verdict: "the pod gets no id", Reasons: []string{err.Error()}}, nil
	}
	if err != nil {
		return Explanation{}, err
	}
	n, err := read(ctx, s, ref)
	if err != nil {
		return Explanation{}, err
	}
	if err := n.readRollout(ctx, s); err != nil {
		return Explanation{}, err
	}
	if p, listed := n.pods[name]; !listed || p.UID != string(whole.GetUID()) { // other labels than the owner selects
		n.pods[name] = newPod(whole, n.owner, false)
	}
	if p := n.pods[name]; p.live() {
		n.tryWrite(ctx, s, p)
		n.tryMap(ctx, s)
	}
	e := factsOf(n).explain(name, startOf(whole))
	if p := n.pods[name]; e.ID == nil && !census.Finished(p.phase) {
		if p.byController { // its account needs no permission
			e.Reasons = append(e.Reasons, said(ctx, s, whole)...)
			return e, nil
		}
		e.Reasons = append(e.Reasons, missing(ctx, s, whole, ref, p)...)
		e.Reasons = append(e.Reasons, said(ctx, s, whole)...)
	}
	if missing := check.PolicyMissing(ctx, s); missing != "" {
		e.Reasons = append(e.Reasons, missing)
	} else if passes := check.PolicyPasses(ctx, s, whole); passes != "" {
		e.Reasons = append(e.Reasons, passes)
	}
	return e, nil
}

// explain does no I/O. start are the reasons why the pod's containers do not run.
func (f *facts) explain(name string, start []string) Explanation {
	p := f.pods[name]
	e := Explanation{Pod: name, Namespace: f.owner.Namespace, Owner: f.owner.String(), Reasons: []string{}}
	id, named := f.owner.Record.State.Slots.Of(name)
	switch {
	case !p.live():
		e.Verdict = fmt.Sprintf("the pod has ended (%s), and a pod that has ended has no id", p.phase)
	case p.Receipt.Slot() >= 0 && !f.left(p):
		id = p.Receipt.Slot()
		e.ID, e.Verdict = &id, fmt.Sprintf("the pod has id %d of %s", id, f.owner)
		if f.fenced(p, id) {
			e.ID, e.Verdict = nil, fmt.Sprintf("the pod is fenced: it keeps id %d of %s until another pod takes it, and its program has no id", id, f.owner)
		}
		e.Reasons = slices.Concat(f.outlook(p, id), start, f.found(name, false))
	case p.byAgent && p.elsewhere.State == receipt.Locks && f.strays(p):
		e.Verdict = fmt.Sprintf("the pod works under id %d of %s, its former owner, and keeps that id until it is replaced, or until %s proposes another one to it",
			p.elsewhere.Share.ID, p.elsewhere.Owner, f.owner)
		e.Reasons = slices.Concat(start, f.found(name, false))
	case named && f.proposed(id):
		left := f.resting(id)
		if e.Verdict = fmt.Sprintf("%s proposes id %d to the pod, and %s", f.owner, id, p.lacking(id)); left != "" {
			e.Reasons = append(e.Reasons, fmt.Sprintf("id %d rests for another %s (annotation %s)", id, left, assignment.ReuseKey))
		} else {
			e.Verdict += "; that takes a moment"
		}
		// A strict pod writes its first receipt after it gets its Lease. While it waits for that, it may have no receipt.
		if bars := f.bars(id, name); bars != "" && p.Receipt.Strict {
			e.Reasons = append(e.Reasons, bars+": the pod takes the id after that")
		} else if bars != "" && p.Receipt.State == receipt.None {
			e.Reasons = append(e.Reasons, bars+": if the pod is strict, it takes the id after that")
		}
		e.Reasons = slices.Concat(e.Reasons, start, f.found(name, false))
	case p.Terminating:
		e.Verdict = "the pod is Terminating, and gets no id any more"
	default:
		e.Verdict = fmt.Sprintf("the pod waits for an id of %s", f.owner)
		e.Reasons = slices.Concat(start, f.waitsFor(p), f.found(name, true))
	}
	return e
}

// outlook describes what will happen to the id of a pod that has one.
func (f *facts) outlook(p pod, id int) []string {
	var reasons []string
	if p.Terminating {
		return []string{"the pod is Terminating, and keeps the id until it has given it back or is gone"}
	}
	if id >= f.owner.Count {
		reasons = append(reasons, fmt.Sprintf("the count is %d, so the pod moves to another id as soon as one is free", f.owner.Count))
	}
	if requester := f.owner.Record.State.Handover[id]; requester != "" {
		reasons = append(reasons, fmt.Sprintf("pod %s of a newer revision asks for the id: this pod gives it when its work has stopped, and its log says if that does not happen", requester))
	}
	return slices.Concat(reasons, f.numbers(p), f.onCount(p))
}

// waitsFor names the pods that have the ids for which this pod waits.
func (f *facts) waitsFor(p pod) []string {
	state, count := f.owner.Record.State, f.owner.Count
	if count == 0 {
		return []string{f.owner.String() + " is scaled to 0, so there is no id"}
	}
	var reasons []string
	known := f.refused[p.Name] != "" // the reason why the pod has no annotations
	if !known {
		reasons = p.behind()
	}
	if !known && !p.sign() && (!p.byAgent || p.told != nil) { // without a proposal an agent has nothing to write
		reasons = append(reasons, "idalloc has written nothing on the pod: it has not started there, it may not write, or no container runs it")
	}
	if !p.Owned {
		reasons = append(reasons, fmt.Sprintf("the pod's labels are not those that %s selects, so it does not count there", f.owner))
	}
	if failed := p.Receipt.Failures(); failed == 0 && p.gaveUp() {
		reasons = append(reasons, "the pod gave its slot up for another pod, and takes one again when no other pod waits")
	} else if failed > 0 {
		reasons = append(reasons, fmt.Sprintf("the pod's program ended by itself soon after it had got an id (%d times in a row), so other pods come first: read the program's log", failed))
	}
	if id, asks := state.Handover.Of(p.Name); asks {
		return append(reasons, fmt.Sprintf("the pod has asked pod %s for id %d: that pod gives it when its work has stopped, and its log says if that does not happen", state.Slots[id], id))
	}
	if p.Ordinal != proposal.NoOrdinal && p.Ordinal < count {
		if name, _ := f.holder(p.Ordinal); name != "" {
			return append(reasons, fmt.Sprintf("the pod has ordinal %d and waits for the id of that number, which pod %s has", p.Ordinal, name))
		}
	}
	if known || f.mapRefused != "" || p.gated && (p.contract != "" || p.noNumber != "") { // the pod gets no id, even if one is free
		return reasons
	}
	return append(reasons, f.holders()...)
}

// holders describes the pods that have all ids, by kind. It returns nil if an id is free.
func (f *facts) holders() []string {
	var ending, strange, live []string
	for id := range min(f.owner.Count, mostListed) {
		name, _ := f.holder(id)
		if name == "" {
			return nil
		}
		switch p := f.pods[name]; {
		case p.Terminating:
			ending = append(ending, name)
		case !p.Owned:
			strange = append(strange, name)
		default:
			live = append(live, name)
		}
	}
	reasons := []string{fmt.Sprintf("all %d ids belong to other pods", f.owner.Count)}
	if len(ending) > 0 {
		reasons = append(reasons, "Terminating, and with an id until they have given it back or are gone: "+few(ending))
	}
	if len(strange) > 0 {
		reasons = append(reasons, "relabelled, and with an id until they are deleted: "+few(strange))
	}
	if len(ending)+len(strange) == 0 && len(f.rollout.told) == 0 {
		reasons = append(reasons, fmt.Sprintf("they live (%s): the pod gets an id when one of them ends or hands its id over, or when the count grows", few(live)))
	}
	return reasons
}

// found returns verify's findings about the pod. With waits, it also returns what keeps ids from waiting pods.
func (f *facts) found(name string, waits bool) []string {
	keep := []string{"dead", "lost", "lostStrict", "stuck", "overdue", "condemned", "condemnedIdle"}
	var found []string
	for _, is := range reportOf(f).Findings {
		general := waits && (is.Pod == "" || slices.Contains(keep, is.Kind)) && is.Partitions == ""
		if is.Pod == name || general {
			found = append(found, is.Detail)
		}
	}
	if waits && f.strict() {
		found = append(found, f.sayAll(leaseNotes())...)
	}
	return found
}

// Text returns the explanation as sentences, one per line.
func (e Explanation) Text() string {
	return strings.Join(append([]string{e.Pod + ": " + e.Verdict}, e.Reasons...), "\n  - ") + "\n"
}

// startOf explains why a pod's containers do not run.
func startOf(u *unstructured.Unstructured) []string {
	var reasons []string
	if c := condition(u, "PodScheduled"); c["status"] == "False" && c["reason"] != "SchedulingGated" {
		reasons = append(reasons, fmt.Sprintf("Kubernetes has no node for the pod: %v", cmp.Or(c["message"], c["reason"])))
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, status := range fields.Objects(u.Object, "status", field) {
			reasons = append(reasons, containerOf(status)...)
		}
	}
	return reasons
}

// containerOf explains from its status why a container does not run.
func containerOf(status map[string]any) []string {
	var reasons []string
	name, _, _ := unstructured.NestedString(status, "name")
	waiting, _, _ := unstructured.NestedStringMap(status, "state", "waiting")
	if reason := waiting["reason"]; reason != "" && reason != "PodInitializing" && reason != "ContainerCreating" {
		reasons = append(reasons, fmt.Sprintf("container %s does not start: %s", name, joined(reason, waiting["message"])))
	}
	for _, field := range []string{"state", "lastState"} {
		code, there, _ := unstructured.NestedInt64(status, field, "terminated", "exitCode")
		if !there || code == 0 || name == assignment.CountWatcher {
			continue
		}
		reason, _, _ := unstructured.NestedString(status, field, "terminated", "reason")
		message, _, _ := unstructured.NestedString(status, field, "terminated", "message")
		reasons = append(reasons, fmt.Sprintf("container %s ended with exit code %d: %s", name, code, joined(reason, message)))
		break
	}
	return reasons
}

func joined(reason, message string) string { return strings.TrimSuffix(reason+": "+message, ": ") }
