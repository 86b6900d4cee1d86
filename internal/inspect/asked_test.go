package inspect

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/test/apifake"
)

// asking returns a Store of an API server that refuses what denied says, and that has no admission policy and allows service accounts nothing.
func asking(t *testing.T, denied func(r *http.Request) bool, objects ...*unstructured.Unstructured) *store.Store {
	t.Helper()
	server := apifake.New(t)
	for _, o := range objects {
		server.Put(o)
	}
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		var body any
		switch {
		case denied(r), strings.Contains(r.URL.Path, "/admissionregistration.k8s.io/"):
			w.WriteHeader(http.StatusForbidden)
			body = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			}
		case strings.HasSuffix(r.URL.Path, "/localsubjectaccessreviews"):
			body = map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "status": map[string]any{"allowed": false}}
		default:
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
		return true
	})
	s := server.Store(t, testclock.NewFakeClock(apifake.Born()))
	return s
}

func nothing(*http.Request) bool { return false }

// below returns an object with a controller.
func below(o *unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	o.SetOwnerReferences(apifake.ControlledBy(kind, name, "c"))
	return o
}

func replicaSet(annotations map[string]string) *unstructured.Unstructured {
	rs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apifake.Apps, "kind": kinds.ReplicaSet, metadata: map[string]any{"name": "worker-5d9", "uid": "c"},
	}}
	rs.SetAnnotations(annotations)
	return below(rs, apifake.Deployment, apifake.Worker)
}

func TestExplainAsksTheAPIServer(t *testing.T) {
	held := assignment.State{Slots: assignment.Slots{0: "worker-a"}}
	waits := below(apifake.Pod("worker-b"), kinds.ReplicaSet, "worker-5d9")
	relabelled := waits.DeepCopy()
	relabelled.SetLabels(map[string]string{"app": "other"})
	ended := waits.DeepCopy()
	ended.Object["status"] = map[string]any{"phase": "Failed"}
	for name, tc := range map[string]struct {
		pod *unstructured.Unstructured
		// says are parts of the text, and never is one that it must not have.
		says  []string
		never string
	}{
		"a waiter":         {waits, []string{"waits for an id of Deployment/worker", "all 1 ids belong to other pods", "service account default may not: "}, ""},
		"no policy":        {waits, []string{"an admission policy limits the tokens of pods"}, ""},
		"a relabelled one": {relabelled, []string{"waits for an id", "the pod's labels are not those that Deployment/worker selects"}, ""},
		"one that ended":   {ended, []string{"the pod has ended (Failed)"}, "service account"},
		"a holder":         {below(apifake.Holding("worker-a", 0), kinds.ReplicaSet, "worker-5d9"), []string{"has id 0 of Deployment/worker"}, "service account"},
		"a lone pod":       {apifake.Pod("worker-b"), []string{"the pod gets no id", "stands alone: run it from a Deployment"}, ""},
		"a daemon":         {below(apifake.Pod("worker-b"), "DaemonSet", worker), []string{"the pod gets no id", "which idalloc cannot count"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := asking(t, nothing, apifake.Assigned(1, held), replicaSet(nil), below(apifake.Holding("worker-a", 0), kinds.ReplicaSet, "worker-5d9"), tc.pod)
			e, err := Explain(t.Context(), s, apifake.Namespace, tc.pod.GetName())
			if err != nil {
				t.Fatal(err)
			}
			for _, says := range tc.says {
				if !strings.Contains(e.Text(), says) {
					t.Errorf("%s\nlacks %q", e.Text(), says)
				}
			}
			if tc.never != "" && strings.Contains(e.Text(), tc.never) {
				t.Errorf("%s\nhas %q", e.Text(), tc.never)
			}
		})
	}
}

// An explanation of a pod that could not be read would be a guess.
func TestExplainTellsWhatItMayNotRead(t *testing.T) {
	pod := below(apifake.Pod("worker-b"), kinds.ReplicaSet, "worker-5d9")
	for _, what := range []string{"/pods/worker-b", "/replicasets/worker-5d9", "/deployments/worker", "/pods"} {
		s := asking(t, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, what) }, apifake.Owner(1), replicaSet(nil), pod)
		if e, err := Explain(t.Context(), s, apifake.Namespace, "worker-b"); err == nil {
			t.Errorf("%s is refused, and the pod is explained: %s", what, e.Text())
		}
	}
}

func TestWorkloadsOfAKindThatMayNotBeListed(t *testing.T) {
	marks := map[string]string{"idalloc.dev/assignment": "{}"}
	owner, other := apifake.Owner(1), apifake.Owner(1)
	owner.SetAnnotations(marks)
	other.SetName("other")
	s := asking(t, func(r *http.Request) bool { return path.Base(r.URL.Path) == "jobs" }, owner, other, replicaSet(marks))
	found, err := Workloads(t.Context(), s, apifake.Namespace, "")
	if err == nil || !strings.Contains(err.Error(), `verb "list" on resource "jobs"`) {
		t.Errorf("the error is %v", err)
	}
	if want := []kinds.Ref{apifake.Ref()}; !slices.Equal(found, want) {
		t.Errorf("found %v; a ReplicaSet of a Deployment has a copy of its annotations", found)
	}
}

func TestWhatKubernetesSaysOfARolloutIsRead(t *testing.T) {
	owner := apifake.Owner(1)
	owner.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{
		map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it is late"},
	}}
	n := settledPods(1)
	if err := n.readRollout(t.Context(), asking(t, nothing, owner)); err != nil || n.rollout.overdue != "it is late" {
		t.Errorf("%q, %v", n.rollout.overdue, err)
	}
}

func TestVerifyDoesNotNeedToListLeases(t *testing.T) {
	held := assignment.State{Slots: assignment.Slots{0: "worker-a"}}
	holder := apifake.Holding("worker-a", 0)
	text := receipt.Receipt{UID: "worker-a-uid", Owner: "Deployment/worker", State: receipt.Locks, Share: receipt.Share{ID: 0}, Strict: true, Write: "1"}.Encode()
	holder.SetAnnotations(map[string]string{receipt.Key: text})
	for denied, notes := range map[string]int{"leases": 1, "": 0} {
		s := asking(t, func(r *http.Request) bool { return path.Base(r.URL.Path) == denied }, apifake.Assigned(1, held), holder)
		ref := apifake.Ref()
		if denied == "" {
			_, err := s.PutLease(t.Context(), ref, slotlease.Lease{ID: 0, Holder: "worker-a-uid", Pod: "worker-a", Lasts: 40 * time.Second, Renewed: apifake.Born()})
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := Verify(t.Context(), s, ref)
		if err != nil || !r.OK || r.Held != 1 || len(r.Notes) != notes {
			t.Errorf("%q is denied: %+v, %v", denied, r, err)
		}
		v, err := Read(t.Context(), s, ref)
		if err != nil || (v.Slots[0].Lease == nil) != (denied != "") || v.Slots[0].State != Held {
			t.Errorf("%q is denied: %+v, %v", denied, v, err)
		}
	}
}

// refusing returns a Store of an API server that refuses updates of a resource with this sentence, and the names in which they were tried. Without permitted, you may
// not act in another name.
func refusing(t *testing.T, resource, sentence string, permitted bool, objects ...*unstructured.Unstructured) (s *store.Store, tried *[]string) {
	t.Helper()
	server := apifake.New(t)
	for _, o := range objects {
		server.Put(o)
	}
	tried = &[]string{}
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || path.Base(path.Dir(r.URL.Path)) != resource {
			return false
		}
		if r.URL.Query().Get("dryRun") != metav1.DryRunAll {
			t.Error("it is no dry run")
		}
		as, says := r.Header.Get("Impersonate-User"), sentence
		if as != "" && !permitted {
			says = `users "x" is forbidden: User "me" cannot impersonate resource "users"`
		}
		*tried = append(*tried, as)
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, says)
		return true
	})
	return server.Store(t, testclock.NewFakeClock(apifake.Born())), tried
}

// A policy judges updates, and is newer than the pod. It says more than that nothing stands on the pod.
func TestWhoRefusesWritesIsNamed(t *testing.T) {
	const sentence = `pods "worker-b" is forbidden: ValidatingAdmissionPolicy 'newer' denied request: each pod needs a team`
	held := assignment.State{Slots: assignment.Slots{0: "worker-a"}}
	controller, own := "system:serviceaccount:idalloc-system:idalloc-controller", "system:serviceaccount:"+apifake.Namespace+":default"
	for _, c := range []struct {
		by, resource, account string
		permitted             bool
	}{
		{receipt.ByController, "pods", controller, true},
		{receipt.ByController, "pods", controller, false},
		{receipt.ByAgent, "pods", own, true},
		{receipt.ByAgent, "pods", own, false},
		{receipt.ByController, "deployments", controller, true},
		{receipt.ByAgent, "deployments", controller, true},
		{"", "deployments", own, true},
		{"", "deployments", own, false},
	} {
		pod := below(apifake.Pod("worker-b"), kinds.ReplicaSet, "worker-5d9")
		labels := pod.GetLabels()
		labels[receipt.AssignLabel], labels["pod-template-hash"] = c.by, "5d9"
		pod.SetLabels(labels)
		s, tried := refusing(t, c.resource, sentence, c.permitted,
			apifake.Assigned(2, held), replicaSet(nil), apifake.Holding("worker-a", 0), pod)
		e, err := Explain(t.Context(), s, apifake.Namespace, "worker-b")
		if err != nil || !strings.Contains(e.Text(), sentence) || c.resource == "pods" && (strings.Contains(e.Text(), "idalloc has written nothing") || strings.Contains(e.Text(), "has proposed nothing")) {
			t.Errorf("%+v: %v\n%s", c, err, e.Text())
		}
		report, err := Verify(t.Context(), s, kinds.Ref{APIVersion: apifake.Apps, Kind: apifake.Deployment, Namespace: apifake.Namespace, Name: apifake.Worker})
		if err != nil || !slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Kind == "writeRefused" && strings.Contains(f.Detail, sentence) }) {
			t.Errorf("%+v: %v\n%+v", c, err, report)
		}
		if (*tried)[0] != c.account || !c.permitted && (*tried)[1] != "" {
			t.Errorf("%+v: it was tried as %q", c, *tried)
		}
	}
}

// listing returns a Store of an API server whose lists of a resource have these objects.
func listing(t *testing.T, resource string, items []any, objects ...*unstructured.Unstructured) *store.Store {
	t.Helper()
	server := apifake.New(t)
	for _, o := range objects {
		server.Put(o)
	}
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if path.Base(r.URL.Path) != resource {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
			t.Error(err)
		}
		return true
	})
	return server.Store(t, testclock.NewFakeClock(apifake.Born()))
}

// A budget of 0 keeps the pods of a workload in which no pod waits. The controller says so, and verify would not.
func TestWhatTheControllerSaysIsReadAlthoughNoPodWaits(t *testing.T) {
	event := func(reason, kind, name, uid string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Event", metadata: map[string]any{"name": "e", "namespace": apifake.Namespace}, "reason": reason, "message": "it is so",
			"reportingComponent": reporter, "lastTimestamp": apifake.Born().UTC().Format(time.RFC3339),
			"involvedObject": map[string]any{"kind": kind, "name": name, "uid": uid},
		}
	}
	const a = "worker-a"
	pod := func(id int, annotations map[string]string) *unstructured.Unstructured {
		o := apifake.Holding(a, id)
		labels, is := o.GetLabels(), o.GetAnnotations()
		labels[receipt.AssignLabel], is[receipt.IDKey] = receipt.ByController, "0"
		maps.Copy(is, annotations)
		o.SetLabels(labels)
		o.SetAnnotations(is)
		return o
	}
	refused, large := event("RemovalRefused", apifake.Deployment, worker, apifake.OwnerUID), event("PodTooLarge", "Pod", a, string(apifake.UIDOf(a)))
	for what, tc := range map[string]struct {
		pod   *unstructured.Unstructured
		event map[string]any
		finds bool
	}{
		"an id above the count": {pod(1, nil), refused, true},
		"a pod to be replaced":  {pod(0, map[string]string{assignment.OnCountKey: assignment.OnCountReplace, receipt.StartCountKey: "2"}), refused, true},
		"a pod that is full":    {pod(1, map[string]string{receipt.IDKey: ""}), event("WriteRefused", apifake.Deployment, worker, apifake.OwnerUID), true},
		"nothing to do":         {pod(0, nil), refused, false},
		"a pod that is large":   {pod(1, map[string]string{receipt.IDKey: ""}), large, true},
		"one that is not of it": {pod(1, map[string]string{receipt.IDKey: ""}), event("PodTooLarge", "Pod", a, "other"), false},
	} {
		s := listing(t, "events", []any{tc.event}, apifake.Assigned(1, assignment.State{Slots: assignment.Slots{0: a}}), tc.pod)
		r, err := Verify(t.Context(), s, apifake.Ref())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == "standing" && strings.Contains(f.Detail, "it is so") }) != tc.finds {
			t.Errorf("%s: findings are %+v", what, r.Findings)
		}
	}
}

// Pods are replaced by evictions although Kubernetes would roll without any.
func TestABudgetThatKeepsPodsThatTheCountReplacesIsRead(t *testing.T) {
	budget := map[string]any{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", metadata: map[string]any{"name": "tight", "namespace": apifake.Namespace},
		"spec": map[string]any{"selector": map[string]any{}}, "status": map[string]any{"desiredHealthy": 1, "expectedPods": 1},
	}
	for onCount, warns := range map[string]bool{assignment.OnCountReplace: true, assignment.OnCountRestart: false} {
		owner, pod := apifake.Assigned(1, assignment.State{Slots: assignment.Slots{0: "worker-a"}}), apifake.Holding("worker-a", 0)
		if err := unstructured.SetNestedField(owner.Object, "Recreate", "spec", "strategy", "type"); err != nil {
			t.Fatal(err)
		}
		labels, is := pod.GetLabels(), pod.GetAnnotations()
		labels[receipt.AssignLabel], is[receipt.IDKey], is[assignment.OnCountKey] = receipt.ByController, "0", onCount
		pod.SetLabels(labels)
		pod.SetAnnotations(is)
		r, err := Verify(t.Context(), listing(t, "poddisruptionbudgets", []any{budget}, owner, pod), apifake.Ref())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(r.Warnings, "\n"), "PodDisruptionBudget tight wants 1 of 1 pods available. The controller replaces pods") != warns {
			t.Errorf("%s: warnings are %q", onCount, r.Warnings)
		}
	}
}
