package gc

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// podsServer answers as an API server with these pods does, whole or with their metadata alone.
type podsServer []corev1.Pod

// ServeHTTP implements http.Handler.
func (s podsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	meta := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	if name := path.Base(r.URL.Path); name != "pods" {
		i := slices.IndexFunc(s, func(p corev1.Pod) bool { return p.Name == name })
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			answer(w, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound,
				Code: http.StatusNotFound, Details: &metav1.StatusDetails{Name: name, Kind: "pods"},
			})
			return
		}
		answer(w, shown(s[i], meta))
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	field, ferr := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil || ferr != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	items := []any{}
	for _, p := range s {
		if selector.Matches(labels.Set(p.Labels)) && field.Matches(fields.Set{"status.phase": string(p.Status.Phase)}) {
			items = append(items, shown(p, meta))
		}
	}
	list := map[string]any{"apiVersion": "v1", "kind": "PodList", "items": items}
	if meta {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	answer(w, list)
}

func answer(w http.ResponseWriter, what any) {
	if err := json.NewEncoder(w).Encode(what); err != nil {
		panic(err)
	}
}

func shown(p corev1.Pod, meta bool) any {
	if meta {
		return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: p.ObjectMeta}
	}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return p
}

// world is an owner and pods as chance has them: holders that are alive, dead, gone, replaced or relabelled, waiters, bad receipts.
func world(r *rand.Rand, now time.Time) (store.Owner, podsServer) {
	owner := store.Owner{
		Ref: store.Ref{APIVersion: "apps/v1", Kind: store.Deployment, Namespace: "shop", Name: "worker"}, Selector: "app=worker", Count: 30, Trust: assignment.Clean,
		Record: assignment.Record{Present: true, Sealed: true, State: assignment.State{Slots: assignment.Slots{}, UIDs: assignment.Slots{}}},
	}
	pods := make(podsServer, 0, 30)
	for i := range r.IntN(30) {
		name := fmt.Sprintf("worker-%02d", i)
		uid := types.UID("uid-" + name)
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: uid, Labels: map[string]string{"app": "worker"}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
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
		server := httptest.NewServer(pods)
		s, err := store.New(&rest.Config{Host: server.URL, QPS: -1}, "", testclock.NewFakeClock(now))
		if err != nil {
			t.Fatal(err)
		}
		planned, err := Survey(t.Context(), s, owner)
		if err != nil {
			t.Fatal(err)
		}
		met := map[string]bool{}
		looked, err := Inspect(t.Context(), s, owner, func(pod *unstructured.Unstructured, _ bool) { met[pod.GetName()] = true })
		server.Close()
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
