package gc

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// world is an owner and pods as chance has them: holders that are alive, dead, gone, replaced or relabelled, waiters, bad receipts.
func world(r *rand.Rand, now time.Time) (store.Owner, []corev1.Pod) {
	owner := store.Owner{
		Ref: store.Ref{APIVersion: "apps/v1", Kind: store.Deployment, Namespace: apifake.Namespace, Name: "worker"}, Selector: "app=worker", Count: 30, Trust: assignment.Clean,
		Record: assignment.Record{Present: true, Sealed: true, State: assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}}},
	}
	pods := make([]corev1.Pod, 0, 30)
	for i := range r.IntN(30) {
		name := fmt.Sprintf("worker-%02d", i)
		uid := types.UID("uid-" + name)
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: apifake.Namespace, UID: uid, Labels: map[string]string{"app": "worker"}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		}}
		p.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded}[max(0, r.IntN(8)-4)]
		if r.IntN(4) > 0 {
			owner.Record.State.Slots[i], owner.Record.State.UIDs[i] = name, assignment.ShortUID(string(uid))
		}
		switch r.IntN(4) {
		case 0, 1:
			receipt := assignment.Receipt{UID: string(uid), Owner: owner.String(), ID: i, Epoch: 7}
			p.Annotations = map[string]string{assignment.ReceiptKey: receipt.Encode()}
			p.Labels[assignment.InstanceIDLabel], p.Labels[assignment.OwnerLabel] = strconv.Itoa(i), assignment.OwnerLabelValue(owner.String())
		case 2:
			p.Annotations = map[string]string{assignment.ReceiptKey: "{"}
		}
		switch r.IntN(6) {
		case 0: // relabelled
			delete(p.Labels, "app")
		case 1: // replaced
			p.UID += "-b"
		case 2: // gone
			continue
		}
		pods = append(pods, p)
	}
	return owner, pods
}

// Who looks from outside must count the same pods as live, dead and damaged as who plans.
func TestInspectCountsAsSurveyDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same worlds each time
	now := time.UnixMilli(1795219200123)
	for i := range 100 {
		owner, pods := world(r, now)
		server := apifake.New(t)
		for _, p := range pods {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
			if err != nil {
				t.Fatal(err)
			}
			pod := &unstructured.Unstructured{Object: content}
			pod.SetAPIVersion("v1")
			pod.SetKind(apifake.Pods)
			server.Put(pod)
		}
		s, err := store.New(server.Config(), "", testclock.NewFakeClock(now))
		if err != nil {
			t.Fatal(err)
		}
		planned, err := Survey(t.Context(), s, owner)
		if err != nil {
			t.Fatal(err)
		}
		met := map[string]bool{}
		looked, err := Inspect(t.Context(), s, owner, func(pod *unstructured.Unstructured, _ bool) { met[pod.GetName()] = true })
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(looked.Live, planned.Live) || !reflect.DeepEqual(looked.BadReceipts, planned.BadReceipts) {
			t.Fatalf("world %d: looked at from outside %+v\na plan sees %+v", i, looked, planned)
		}
		dead := func(c Census) (ids []int) {
			for _, v := range c.Dead {
				ids = append(ids, v.ID)
			}
			return ids
		}
		if !slices.Equal(dead(looked), dead(planned)) {
			t.Fatalf("world %d: dead from outside %v, in a plan %v", i, dead(looked), dead(planned))
		}
		for _, p := range pods {
			if id, named := owner.Record.State.Slots.Of(p.Name); named && !met[p.Name] {
				t.Fatalf("world %d: pod %s, which has slot %d, was not shown", i, p.Name, id)
			}
		}
	}
}

// However many holders are missing, Inspect shows none of the namespace's other pods, and says of each holder why it is dead.
func TestInspectShowsTheOwnersPodsAndTheHolders(t *testing.T) {
	server := apifake.New(t)
	const n = fewVictims + 4
	holders := make([]string, 0, n)
	for id := range n {
		holders = append(holders, fmt.Sprintf("%02d", id))
	}
	server.Put(apifake.Assigned(n, held(holders...)))
	server.Put(apifake.Pod(holders[0]))
	server.Put(failed(apifake.Pod(holders[1])))
	server.Put(relabelled(apifake.Pod(holders[2])))
	server.Put(failed(relabelled(apifake.Pod(holders[3]))))
	server.Put(relabelled(apifake.Pod("stranger")))
	shown := map[string]bool{}
	c, err := inspected(t, server, func(pod *unstructured.Unstructured, owned bool) { shown[pod.GetName()] = owned })
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{holders[0]: true, holders[1]: true, holders[2]: false, holders[3]: false}; !maps.Equal(shown, want) {
		t.Errorf("shown are %v, want %v", shown, want)
	}
	if want := []string{holders[0], holders[2]}; !slices.Equal(names(c.Live), want) {
		t.Errorf("alive are %v, want %v", names(c.Live), want)
	}
	for _, v := range c.Dead {
		want := itsGone
		if v.ID == 1 || v.ID == 3 {
			want = "its pod is Failed"
		}
		if v.Reason != want {
			t.Errorf("pod %s is dead because %s, want %q", v.Pod, v.Reason, want)
		}
	}
	if slices.Contains(server.Requests(), "GET pods/"+holders[1]) {
		t.Errorf("%s was read once more, although the list has it", holders[1])
	}
}
