package store

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/placement"
)

const testOwner = "Deployment/worker"

// locks is a receipt for slot 3.
func locks() receipt.Receipt {
	return receipt.Receipt{UID: "u", Owner: testOwner, State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "w1"}
}

// waits is a receipt of a pod without a slot.
func waits(write string) receipt.Receipt {
	return receipt.Receipt{UID: "u", Owner: testOwner, State: receipt.Waits, Share: receipt.Nothing(), Write: write}
}

func TestALockComesAndGoes(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
	swap := func(from *metav1.PartialObjectMetadata, next receipt.Receipt) *metav1.PartialObjectMetadata {
		t.Helper()
		written, err := s.SwapLock(t.Context(), from, from.Annotations[receipt.Key], next)
		if err != nil {
			t.Fatal(err)
		}
		if now := read(t, s); !maps.Equal(now.Annotations, written.Annotations) || !maps.Equal(now.Labels, written.Labels) {
			t.Errorf("the pod is %v %v, and SwapLock returns %v %v", now.Annotations, now.Labels, written.Annotations, written.Labels)
		}
		return written
	}
	first := swap(read(t, s), locks())
	if first.Annotations[receipt.Key] != locks().Encode() || first.Annotations[assignment.DeletionCostKey] != "2147483644" ||
		first.Labels[receipt.IDLabel] != "3" || first.Labels[receipt.OwnerLabel] != "deployment.worker" {
		t.Errorf("with slot 3: %v %v", first.Annotations, first.Labels)
	}
	if want := "PATCH " + podPath + " as " + assignment.FieldManager; len(server.sent) != 1 || server.sent[0] != want {
		t.Errorf("sent %q, want %q", server.sent, want)
	}
	renewed := locks()
	renewed.Write = "w2"
	second := swap(first, renewed)
	if _, err := s.SwapLock(t.Context(), first, first.Annotations[receipt.Key], locks()); !errors.Is(err, request.ErrConflict) {
		t.Errorf("a late write over a newer receipt: %v", err)
	}
	third := swap(second, waits("w3"))
	if len(third.Annotations) != 1 || len(third.Labels) != 0 {
		t.Errorf("a pod that waits: %v %v", third.Annotations, third.Labels)
	}
}

// A pod without an id keeps a deletion cost of another program, and loses idalloc's own.
func TestADeletionCostOfAnotherProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		cost  string
		label any
		keeps bool
	}{
		"idalloc's own":                {cost: "2147483644", label: "3"},
		"another program's":            {cost: "100", label: "3", keeps: true},
		"one of a pod without a label": {cost: "2147483644", keeps: true},
		"one beside a damaged label":   {cost: "2147483647", label: "three", keeps: true},
	} {
		labels := map[string]any{"app": testName}
		if tc.label != nil {
			labels[receipt.IDLabel] = tc.label
		}
		annotations := map[string]any{receipt.Key: locks().Encode(), assignment.DeletionCostKey: tc.cost}
		_, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, labels)})
		if _, err := s.SwapLock(t.Context(), read(t, s), "", waits("w2")); err != nil {
			t.Fatal(err)
		}
		now := read(t, s)
		cost, there := now.Annotations[assignment.DeletionCostKey]
		_, labelled := now.Labels[receipt.IDLabel]
		if there != tc.keeps || (there && cost != tc.cost) || labelled || now.Labels["app"] != testName {
			t.Errorf("%s: then %v %v", name, now.Annotations, now.Labels)
		}
	}
}

// A pod whose template says so keeps its user's deletion cost when it takes a slot and when it gives one up, and gets none if it has none.
func TestADeletionCostOfThePodsUser(t *testing.T) {
	for _, cost := range []string{"100", "2147483644", ""} {
		annotations := map[string]any{assignment.KeepCostKey: assignment.KeepCost}
		if cost != "" {
			annotations[assignment.DeletionCostKey] = cost
		}
		_, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, map[string]any{"app": testName})})
		wrote := ""
		for _, next := range []receipt.Receipt{locks(), waits("w2")} {
			pod, err := s.SwapLock(t.Context(), read(t, s), wrote, next)
			if err != nil {
				t.Fatal(err)
			}
			if wrote = next.Encode(); pod.Annotations[assignment.DeletionCostKey] != cost || pod.Annotations[receipt.Key] != wrote {
				t.Errorf("cost %q, then %v", cost, pod.Annotations)
			}
		}
	}
}

// A pod that takes a slot gets the slot's receipt, label and cost in place of what stood there.
func TestALockReplacesWhatWasThere(t *testing.T) {
	before := locks()
	before.Share.ID = 4
	annotations := map[string]any{receipt.Key: before.Encode(), assignment.DeletionCostKey: "100"}
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, map[string]any{"app": testName})})
	pod := read(t, s)
	server.change(podPath, "labels", map[string]any{"app": testName, receipt.IDLabel: "9"})
	if _, err := s.SwapLock(t.Context(), pod, "", locks()); !errors.Is(err, request.ErrConflict) {
		t.Errorf("a label was changed, and the write ends with %v", err)
	}
	if _, err := s.SwapLock(t.Context(), read(t, s), "", locks()); err != nil {
		t.Fatal(err)
	}
	now := read(t, s)
	if now.Annotations[receipt.Key] != locks().Encode() || now.Annotations[assignment.DeletionCostKey] != "2147483644" || now.Labels[receipt.IDLabel] != "3" {
		t.Errorf("then %v %v", now.Annotations, now.Labels)
	}
}

// A lock that others cannot see is none.
func TestALockThatIsNotKept(t *testing.T) {
	for name, admits := range map[string]func(annotations, labels map[string]any){
		"the receipt is dropped": func(a, _ map[string]any) { delete(a, receipt.Key) },
		"the receipt is changed": func(a, _ map[string]any) { a[receipt.Key] = a[receipt.Key].(string) + " " }, //nolint:errcheck,forcetypeassert // it was written
		"the id is dropped":      func(_, l map[string]any) { delete(l, receipt.IDLabel) },
		"the id is changed":      func(_, l map[string]any) { l[receipt.IDLabel] = "4" },
		"the owner is dropped":   func(_, l map[string]any) { delete(l, receipt.OwnerLabel) },
	} {
		server, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
		server.admits = func(o map[string]any) {
			admits(metaOf(o)["annotations"].(map[string]any), metaOf(o)["labels"].(map[string]any)) //nolint:errcheck,forcetypeassert // they were written
		}
		if _, err := s.SwapLock(t.Context(), read(t, s), "", locks()); !errors.Is(err, request.ErrNotKept) || request.Temporary(err) || !strings.Contains(err.Error(), "pod worker-a in namespace shop") {
			t.Errorf("%s: %v", name, err)
		}
	}
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
	server.admits = func(o map[string]any) {
		delete(metaOf(o)["annotations"].(map[string]any), assignment.DeletionCostKey) //nolint:errcheck,forcetypeassert // they were written
	}
	if _, err := s.SwapLock(t.Context(), read(t, s), "", locks()); err != nil {
		t.Errorf("a deletion cost is no lock, but: %v", err)
	}
}

// holding is a pod with a receipt, of text if there is one, and its labels.
func holding(name string, r receipt.Receipt, text string) map[string]any {
	if text == "" {
		text = r.Encode()
	}
	return map[string]any{apiVersionField: "v1", "kind": "Pod", metadataField: map[string]any{
		"name": name, "namespace": "shop", "uid": r.UID, "resourceVersion": "1",
		"labels":      map[string]any{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: strconv.Itoa(r.Share.ID)},
		"annotations": map[string]any{receipt.Key: text},
	}}
}

// Receipts are found by their labels. One that cannot be read locks its label's slot and every partition.
func TestReceiptsAreListed(t *testing.T) {
	lock := func(uid string, share receipt.Share) receipt.Receipt {
		return receipt.Receipt{UID: uid, Owner: testOwner, State: receipt.Locks, Share: share, Write: "w"}
	}
	a := lock("a", receipt.Share{ID: 0, Of: 8, Partitions: placement.Between(0, 3)})
	b := lock("b", receipt.Share{ID: 1})
	damaged := lock("c", receipt.Share{ID: 1})
	copied := holding("d", lock("d", receipt.Share{ID: 1}), b.Encode())
	other := holding("e", lock("e", receipt.Share{ID: 1}), "")
	metaOf(other)["labels"] = map[string]any{receipt.OwnerLabel: "deployment.other", receipt.IDLabel: "1"}
	const at = "/api/v1/namespaces/shop/pods/"
	server, s := newShelf(t, map[string]map[string]any{
		at + "a": holding("a", a, ""), at + "b": holding("b", b, ""), at + "c": holding("c", damaged, "{"), at + "d": copied, at + "e": other,
		at + "f": aPod(nil, map[string]any{"app": testName}),
	})
	unreadable := receipt.Receipt{State: receipt.Unreadable, Share: receipt.Share{ID: 1}}
	all := []Receipt{
		{a, "a", "a", a.Encode(), "1", nil}, {b, "b", "b", b.Encode(), "1", nil}, {unreadable, "c", "c", "{", "1", nil}, {receipt.Receipt{Share: receipt.Nothing()}, "d", "d", b.Encode(), "1", nil},
	}
	for _, of := range []struct {
		ids  []int
		want []Receipt
	}{{nil, all}, {[]int{1}, all[1:]}, {[]int{7}, []Receipt{}}, {[]int{0, 1, 7}, all}} {
		got, _, err := s.Receipts(t.Context(), theRef(), Sought{IDs: of.ids})
		if err != nil || !reflect.DeepEqual(got, of.want) {
			t.Errorf("of the slots %v:\n%+v, %v, want\n%+v", of.ids, got, err, of.want)
		}
	}
	if !all[2].LocksSlot(1) || !all[2].LocksOf(placement.Of(5, 7)).Equal(placement.Of(5, 7)) {
		t.Errorf("%+v does not lock its slot and every partition", unreadable)
	}
	if want := slices.Repeat([]string{LivePods}, 4); !slices.Equal(server.listed, want) {
		t.Errorf("listed %q, want %q", server.listed, want)
	}
}

// A pod that a former owner still has may work under its slot, and so may one whose receipt was damaged.
func TestReceiptsOfFormerOwnersAreListed(t *testing.T) {
	const former, at = "Deployment/former", "/api/v1/namespaces/shop/pods/"
	lock := receipt.Receipt{UID: "a", Owner: former, State: receipt.Locks, Share: receipt.Share{ID: 1}, Write: "w"}
	for text, want := range map[string]receipt.Receipt{
		lock.Encode(): lock,
		`{"uid":"a","owner":"` + former + `","id":-1}`: {UID: "a", Owner: former, State: receipt.Unreadable, Share: receipt.Share{ID: 1}},
		`{"uid":"b","owner":"` + former + `","id":-1}`: {Share: receipt.Nothing()},
	} {
		pod := holding("a", lock, text)
		metaOf(pod)["labels"] = map[string]any{receipt.OwnerLabel: assignment.OwnerLabelValue(former), receipt.IDLabel: "1"}
		_, s := newShelf(t, map[string]map[string]any{at + "a": pod})
		got, _, err := s.Receipts(t.Context(), theRef(), Sought{Former: []string{former}})
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0].Receipt, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// A list that need not be newer than a moment is answered from the server's cache. A server that was restored from a backup may not know the moment,
// and before Kubernetes 1.31 its cache may not get there while no pod changes.
func TestReceiptsMayBeOfAMoment(t *testing.T) {
	for what, c := range map[string]struct {
		since    string
		restored bool
		want     []string
	}{
		"the newest":            {"", false, []string{" "}},
		"of a moment or later":  {"7", false, []string{"7 NotOlderThan"}},
		"the moment is unknown": {"7", true, []string{"7 NotOlderThan", " "}},
	} {
		t.Run(what, func(t *testing.T) {
			var asked []string
			s := answering(t, func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				asked = append(asked, q.Get("resourceVersion")+" "+q.Get("resourceVersionMatch"))
				w.Header().Set("Content-Type", jsonType)
				if c.restored && q.Has("resourceVersionMatch") {
					w.Header().Set("Retry-After", "1") // it says so again and again
					w.WriteHeader(http.StatusGatewayTimeout)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`)
					return
				}
				_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[]}`)
			})
			_, version, err := s.Receipts(t.Context(), theRef(), Sought{Since: c.since})
			if err != nil || version != "9" || !slices.Equal(asked, c.want) {
				t.Errorf("it asked %q, and got version %q, %v; want %q", asked, version, err, c.want)
			}
		})
	}
}

// What the server notes of idalloc's own last write counts, not that of a kubelet.
func TestAReceiptIsAsOldAsItsLastWrite(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: at(30)},
		{Manager: assignment.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: at(20)},
	}
	if got := LastWrite(fields); !got.Equal(time.Unix(20, 0)) {
		t.Errorf("the last write was at %s", got)
	}
	if got := LastWrite(fields[:1]); !got.IsZero() {
		t.Errorf("without a write of its own, the last one was at %s", got)
	}
}

// A lock without a token is of no use to its pod.
func TestALockWhoseVersionIsNoTokenIsAnError(t *testing.T) {
	for _, version := range []string{"9223372036854775808", "0", "abc"} {
		patches := 0
		r := locks()
		labels := map[string]any{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: strconv.Itoa(r.Share.ID)}
		is := aPod(map[string]any{receipt.Key: r.Encode()}, labels)
		(&unstructured.Unstructured{Object: is}).SetResourceVersion(version)
		s := answering(t, func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPatch {
				patches++
			}
			w.Header().Set("Content-Type", jsonType)
			send(w, is)
		})
		pod := read(t, s)
		if _, err := s.SwapLock(t.Context(), pod, r.Encode(), r); !errors.Is(err, receipt.ErrNoToken) || request.Temporary(err) || !strings.Contains(err.Error(), "pod "+pod.Name+" in namespace shop") {
			t.Errorf("%s: %v", version, err)
		}
		if _, err := s.Take(t.Context(), pod, r); !errors.Is(err, receipt.ErrNoToken) || patches != 1 {
			t.Errorf("%s: %v, and %d patches", version, err, patches)
		}
	}
}
