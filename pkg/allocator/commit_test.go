package allocator

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/test/apifake"
)

const writesOwner = "PATCH deployments/" + apifake.Worker

// empty is a map without a pod.
func empty(fenceAfter time.Duration) assignment.State {
	return assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}, Epoch: epoch, FenceAfter: fenceAfter}
}

// lax is a map that gives slot 0 to a pod and knows of no strict process.
func lax(pod string) assignment.State {
	s := naming(pod, epoch)
	s.FenceAfter = 0
	return s
}

// slotOf is the slot that the map on the server gives to a pod, -1 for none.
func slotOf(t *testing.T, a *Allocator, pod string) int {
	t.Helper()
	owner, err := a.readOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id, has := owner.Record.State.Slots.Of(pod); has {
		return id
	}
	return -1
}

// planned has this process plan once from the owner as it is, and returns how often it wrote.
func planned(t *testing.T, server *apifake.Server, a *Allocator, takeReserved bool) (writes int, d plan.Decision, err error) {
	t.Helper()
	owner, err := a.readOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Requests()
	written, d, err := a.planAndCommit(t.Context(), owner, plan.Claim, takeReserved)
	for _, r := range server.Requests() {
		if r == writesOwner {
			writes++
		}
	}
	if (written != nil) != (writes > 0 && err == nil) {
		t.Errorf("%d writes, and it returns the owner: %t", writes, written != nil)
	}
	return writes, d, err
}

func TestAPlanGivesThisPodASlotOnlyIfItMayHaveIt(t *testing.T) {
	died := func(terminated bool) *unstructured.Unstructured {
		o := apifake.Pod(other)
		state := map[string]any{"running": map[string]any{}}
		if terminated {
			state = map[string]any{"terminated": map[string]any{"reason": "Completed"}}
		}
		o.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c"}}}
		o.Object["status"] = map[string]any{"phase": "Succeeded", "containerStatuses": []any{map[string]any{"name": "c", "state": state}}}
		return o
	}
	inQuarantine := empty(strict)
	inQuarantine.Quarantine = inQuarantine.Quarantine.With(0, 0, epoch)
	for name, tc := range map[string]struct {
		owner  *unstructured.Unstructured
		pods   []*unstructured.Unstructured
		strict bool
		waited time.Duration
		slot   int
		writes int
	}{
		"a slot is free":     {owner: apifake.Assigned(1, empty(0)), slot: 0, writes: 1},
		"it has one":         {owner: apifake.Assigned(1, lax(me)), pods: []*unstructured.Unstructured{lockedAt(me, 0)}, slot: 0},
		"another pod has it": {owner: apifake.Assigned(1, lax(other)), pods: []*unstructured.Unstructured{lockedAt(other, 0)}, slot: -1},
		"nobody tracks the map, and a slot is free":     {owner: apifake.Untracked(apifake.Assigned(1, empty(0))), slot: 0, writes: 1},
		"nobody tracks the map, and all slots are used": {owner: apifake.Untracked(apifake.Assigned(1, lax(other))), pods: []*unstructured.Unstructured{lockedAt(other, 0)}, slot: -1},
		"the holder has ended":                          {strict: true, owner: apifake.Assigned(1, naming(other, epoch)), pods: []*unstructured.Unstructured{died(true)}, slot: 0, writes: 1},
		"the holder's processes may go on":              {strict: true, owner: apifake.Assigned(1, naming(other, epoch)), pods: []*unstructured.Unstructured{died(false)}, slot: -1, writes: 1},
		"the slot is in quarantine":                     {strict: true, owner: apifake.Assigned(1, inQuarantine), waited: assignment.QuarantineTime(strict) - 1, slot: -1},
		"the quarantine is over":                        {strict: true, owner: apifake.Assigned(1, inQuarantine), waited: assignment.QuarantineTime(strict), slot: 0, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := shop(t, tc.owner, append([]*unstructured.Unstructured{bare()}, tc.pods...)...)
			o, slow := Options{}, &handClock{at: time.Hour}
			if tc.strict {
				o.FenceAfter = strict
			}
			a := startedOn(t, server, o)
			a.quarantined.now = slow.now
			slotOf(t, a, me) // it sees the quarantine
			slow.at += tc.waited
			writes, _, err := planned(t, server, a, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := slotOf(t, a, me); got != tc.slot || writes != tc.writes {
				t.Errorf("slot %d after %d writes, want slot %d after %d", got, writes, tc.slot, tc.writes)
			}
		})
	}
}

// A pod of the old revision that gave its slot up leaves a free one to a new pod. What it read of the rolling update for an earlier plan
// says nothing of now.
func TestAPlanReadsWhereThePodStandsInTheRollingUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		revision, earlier string // of the pod's ReplicaSet; "3" is the Deployment's
		takeReserved      bool
		refused           bool
		slot, reserved    int
		reads             bool
	}{
		"of the old revision":                        {revision: "2", slot: -1, reserved: 1, reads: true},
		"of the old revision, which was the newest":  {revision: "2", earlier: "3", slot: -1, reserved: 1, reads: true},
		"of the old revision, and nobody took it":    {revision: "2", takeReserved: true, slot: 0},
		"of the new revision":                        {revision: "3", slot: 0, reads: true},
		"of a revision that is gone":                 {slot: -1, reserved: 1, reads: true},
		"the API server does not say of which it is": {revision: "3", refused: true, slot: -1, reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			owner, pod := apifake.Assigned(1, empty(0)), bare()
			annotations := owner.GetAnnotations()
			annotations[revisionKey] = "3"
			owner.SetAnnotations(annotations)
			setReceipt(pod, assignment.Receipt{UID: string(apifake.UIDOf(me)), Owner: "Deployment/" + apifake.Worker, GaveUp: true})
			server := shop(t, owner, pod, apifake.Pod(other))
			a := startedOn(t, server, Options{})
			if tc.earlier != "" {
				setRevision(server, tc.earlier)
				a.rollout = rolloutOf(t, a)
			}
			if setRevision(server, tc.revision); tc.revision == "" {
				server.Remove("ReplicaSet", "worker-5d9")
			}
			read := false
			server.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/replicasets/") {
					return false
				}
				if read = true; tc.refused {
					apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "no")
				}
				return tc.refused
			})
			_, d, err := planned(t, server, a, tc.takeReserved)
			if (err != nil) != tc.refused {
				t.Errorf("it returns %v", err)
			}
			if got := slotOf(t, a, me); got != tc.slot || read != tc.reads || err == nil && d.Reserved != tc.reserved {
				t.Errorf("slot %d, %d reserved, read: %t", got, d.Reserved, read)
			}
		})
	}
}

func setRevision(server *apifake.Server, text string) {
	server.Change("ReplicaSet", "worker-5d9", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{revisionKey: text}) })
}

// rolloutOf is where the pod stands in the rolling update.
func rolloutOf(t *testing.T, a *Allocator) plan.Rollout {
	t.Helper()
	from, err := a.readOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rollout, err := a.readRollout(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return rollout
}

// Whoever has a slot needs to know that only to judge hand-overs.
func TestAHolderReadsWhereItStandsOnlyDuringAHandOver(t *testing.T) {
	for _, asked := range []bool{false, true} {
		state := lax(me)
		if asked {
			state.Handover = assignment.Slots{0: other}
		}
		server := shop(t, apifake.Assigned(1, state), withReceipt(assignment.Receipt{Epoch: epoch}), apifake.Pod(other))
		a, read := startedOn(t, server, Options{}), false
		server.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			read = read || strings.Contains(r.URL.Path, "/replicasets/worker-5d9")
			return false
		})
		if _, _, err := planned(t, server, a, false); err != nil {
			t.Fatal(err)
		}
		if read != asked {
			t.Errorf("it reads its revision: %t, want %t", read, asked)
		}
	}
}

const revisionKey = "deployment.kubernetes.io/revision"

// byHand has a client of this name set the annotation of the map.
func byHand(manager, text string) *unstructured.Unstructured {
	o := apifake.Assigned(3, naming(me, epoch))
	annotations := o.GetAnnotations()
	annotations[assignment.DefaultKey] = text
	o.SetAnnotations(annotations)
	return apifake.Managed(o, map[string][]string{assignment.FieldManager: {assignment.EpochKey, assignment.SealKey}, manager: {assignment.DefaultKey}})
}

// Operators find in this what happened to their workload.
func TestAPlanTellsWhatSomebodyElseDamagedAndItRestored(t *testing.T) {
	const edited = ` (annotation idalloc.dev/assignment was set by field manager "helm" (Update)): restored from the pods' receipts`
	unreadable := func(name string) *unstructured.Unstructured {
		o := lockedAt(name, 0)
		o.SetAnnotations(map[string]string{assignment.ReceiptKey: "x"})
		return o
	}
	unread := func(name string) string {
		return "pod " + name + `: annotation ` + assignment.ReceiptKey + `: not a receipt: "x"`
	}
	damaged := byHand("helm", "x")
	annotations := damaged.GetAnnotations()
	for _, key := range []string{assignment.EpochKey, assignment.UIDsKey, assignment.FenceAfterKey, assignment.QuarantineKey} {
		annotations[key] = "x"
	}
	damaged.SetAnnotations(annotations)
	for name, tc := range map[string]struct {
		owner *unstructured.Unstructured
		pods  []*unstructured.Unstructured
		holds bool
		want  []event.Damaged
	}{
		"a map of ours": {owner: apifake.Assigned(1, empty(0))},
		"a new owner":   {owner: apifake.Owner(1)},
		"a holder's owner without a map": {
			owner: apifake.Owner(1), holds: true,
			want: []event.Damaged{{Reason: "AssignmentChanged", Detail: "annotations idalloc.dev/assignment, idalloc.dev/epoch and idalloc.dev/seal were removed by somebody whom metadata.managedFields do not name: the assignment was restored from the pods' receipts"}},
		},
		"a map that somebody edited": {
			owner: byHand("helm", "{}"),
			want:  []event.Damaged{{Reason: "AssignmentChanged", Detail: `annotation idalloc.dev/assignment was set by field manager "helm" (Update): the assignment was restored from the pods' receipts`}},
		},
		"a map that kubectl rollout undo brought back": {
			owner: byHand("kubectl", "{}"),
			want: []event.Damaged{{
				Reason: "AssignmentRolledBack", Expected: true,
				Detail: `kubectl rollout undo brought an old copy of the assignment back (annotation idalloc.dev/assignment was set by field manager "kubectl" (Update)): restored from the pods' receipts, holders kept their ids`,
			}},
		},
		"a map that cannot be read": {owner: byHand("helm", "x"), want: []event.Damaged{{Reason: "AssignmentDamaged", Detail: `annotation idalloc.dev/assignment: not JSON: "x"` + edited}}},
		"a map with many mistakes": {
			owner: damaged, want: []event.Damaged{{Reason: "AssignmentDamaged", Detail: `annotation idalloc.dev/assignment: not JSON: "x"; annotation idalloc.dev/uids: not JSON: "x"; annotation idalloc.dev/epoch: not an epoch: "x"` + edited}},
		},
		"a receipt": {
			owner: apifake.Assigned(1, empty(0)), pods: []*unstructured.Unstructured{unreadable("a")},
			want: []event.Damaged{{Reason: "ReceiptDamaged", Detail: unread("a") + ": ignored"}},
		},
		"many receipts": {
			owner: apifake.Assigned(1, empty(0)), pods: []*unstructured.Unstructured{unreadable("a"), unreadable("b"), unreadable("c"), unreadable("d")},
			want: []event.Damaged{{Reason: "ReceiptDamaged", Detail: unread("a") + "; " + unread("b") + "; " + unread("c") + ": ignored"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got heard
			server := shop(t, tc.owner, append([]*unstructured.Unstructured{bare()}, tc.pods...)...)
			a := startedOn(t, server, Options{})
			a.happened = event.Observers{&got}
			owner, err := a.readOwner(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tc.holds {
				a.held = &held{view: owner}
			}
			if _, _, err := planned(t, server, a, false); err != nil {
				t.Fatal(err)
			}
			for i := range tc.want {
				tc.want[i].About = owner.About()
			}
			told, plans, writes := damages(got)
			if !reflect.DeepEqual(told, tc.want) {
				t.Errorf("it tells\n%+v\nwant\n%+v", told, tc.want)
			}
			if plans != 1 || len(writes) != 1 {
				t.Fatalf("it tells of %d plans and %d writes", plans, len(writes))
			}
			if want := len(tc.want) > 0 && tc.want[0].Reason != "ReceiptDamaged"; writes[0].Restores != want {
				t.Errorf("the write restores: %t", writes[0].Restores)
			}
		})
	}
}

// damages are the events that tell of damage, of plans and of writes.
func damages(all heard) (told []event.Damaged, plans int, writes []event.Written) {
	for _, e := range all {
		switch e := e.(type) {
		case event.Damaged:
			told = append(told, e)
		case event.Planned:
			plans++
		case event.Written:
			writes = append(writes, e)
		}
	}
	return told, plans, writes
}

func TestWithoutItsListsAPlanWritesNothing(t *testing.T) {
	server := shop(t, apifake.Assigned(1, empty(0)), bare())
	a := startedOn(t, server, Options{})
	server.Before(func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods")
		if refused {
			apifake.Refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "no")
		}
		return refused
	})
	if writes, _, err := planned(t, server, a, false); err == nil || writes > 0 {
		t.Errorf("%d writes, and it returns %v", writes, err)
	}
}
