package store

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// After a refusal the object itself tells whether the write met a change, or can never be accepted.
func TestWhatARefusedWriteMeans(t *testing.T) {
	invalid := &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "invalid"}
	conflict := &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "changed"}
	quota := &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "quota"}
	broken := &metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd"}
	known := []error{request.ErrConflict, request.ErrAmbiguous, request.ErrGone}
	type outcome struct {
		refusal *metav1.Status
		change  func(*shelf, string)
		want    error // nil is the server's own
	}
	common := map[string]outcome{
		"nothing has changed":       {invalid, func(*shelf, string) {}, nil},
		"another refusal":           {quota, func(s *shelf, path string) { s.change(path, "uid", "other") }, nil},
		"a conflict, by the server": {conflict, func(*shelf, string) {}, request.ErrConflict},
		"an error of the server":    {broken, func(*shelf, string) {}, request.ErrAmbiguous},
		"the object is gone":        {invalid, func(s *shelf, path string) { delete(s.objects, path) }, request.ErrGone},
		"it cannot be known":        {invalid, func(s *shelf, _ string) { s.reading = quota }, request.ErrConflict},
		"the annotations have gone": {invalid, func(s *shelf, path string) {
			s.change(path, "annotations", nil)
			s.change(path, "generation", 9)
			s.change(path, "resourceVersion", "9")
		}, request.ErrConflict},
	}
	check := func(name string, err error, tc outcome) {
		t.Helper()
		if tc.want == nil && (!strings.Contains(fmt.Sprint(err), tc.refusal.Message) || slices.ContainsFunc(known, func(e error) bool { return errors.Is(err, e) })) {
			t.Errorf("%s: %v, want the server's own refusal", name, err)
		}
		if tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	receipts := maps.Clone(common)
	receipts["another pod has the name"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "uid", "other") }, request.ErrGone}
	receipts["a label has changed"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "labels", map[string]any{"app": "other"}) }, request.ErrConflict}
	receipts["anything else has changed"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "resourceVersion", "9") }, request.ErrConflict}
	for name, tc := range receipts {
		server, s := newShelf(t, map[string]map[string]any{podPath: aPod(map[string]any{"a": "b"}, map[string]any{"app": testName})})
		pod := read(t, s)
		server.refusal = tc.refusal
		tc.change(server, podPath)
		_, err := s.SwapLock(t.Context(), pod, "", locks())
		check("a receipt, "+name, err, tc)
	}
	owners := maps.Clone(common)
	owners["another owner has the name"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "uid", "other") }, request.ErrConflict}
	owners["its generation is another"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "generation", 9) }, request.ErrConflict}
	owners["only its status has changed"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "resourceVersion", "9") }, nil}
	owners["it has lost its annotations"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "annotations", nil) }, request.ErrConflict}
	for name, tc := range owners {
		server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(map[string]any{"a": "b"})})
		owner, err := s.GetOwner(t.Context(), theRef())
		if err != nil {
			t.Fatal(err)
		}
		server.refusal = tc.refusal
		tc.change(server, ownerPath)
		_, err = s.Propose(t.Context(), owner, assignment.State{Slots: assignment.Slots{0: "a"}})
		check("a proposal, "+name, err, tc)
	}
}

func get(t *testing.T, s *Store, ref kinds.Ref) Owner {
	t.Helper()
	o, err := s.GetOwner(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A proposal is written over what it was planned on, and over nothing else. The status of a Deployment does not matter.
func TestAProposalTestsWhatItWasPlannedOn(t *testing.T) {
	next := assignment.State{Slots: assignment.Slots{0: "a"}}
	earlier := map[string]any{}
	for k, v := range (assignment.State{Slots: assignment.Slots{1: "b"}, Handover: assignment.Slots{1: "c"}}).Encode() {
		earlier[k] = v
	}
	for name, tc := range map[string]struct {
		annotations map[string]any
		changed     string
		value       any
		want        error
	}{
		"no annotations at all":           {nil, "", nil, nil},
		"an earlier proposal":             {earlier, "", nil, nil},
		"a damaged one":                   {map[string]any{assignment.Key: "{", assignment.HandoverKey: "x"}, "", nil, nil},
		"a status that changed":           {earlier, "resourceVersion", "2", nil},
		"a spec that changed":             {earlier, "generation", 8, request.ErrConflict},
		"an owner that was made again":    {earlier, "uid", "p", request.ErrConflict},
		"annotations that came meanwhile": {nil, "annotations", map[string]any{"a": "b"}, request.ErrConflict},
	} {
		server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(tc.annotations)})
		owner := get(t, s, theRef())
		if tc.changed != "" {
			server.change(ownerPath, tc.changed, tc.value)
		}
		written, err := s.Propose(t.Context(), owner, next)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err == nil && (!maps.Equal(written.Record.State.Encode(), next.Encode()) || written.UID != "o" || !maps.Equal(get(t, s, theRef()).Annotations, written.Annotations)) {
			t.Errorf("%s: the answer is %+v", name, written)
		}
		if want := "PATCH " + ownerPath + " as " + assignment.FieldManager; len(server.sent) != 1 || server.sent[0] != want {
			t.Errorf("%s: sent %q, want %q", name, server.sent, want)
		}
	}
}

// Annotations do not raise the generation of a StatefulSet, so a write of another pod shows in the resourceVersion alone.
func TestAProposalSeesAnothersWriteOnAnyKind(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/shop/statefulsets/worker"
	ref := kinds.Ref{APIVersion: testAPIVersion, Kind: kinds.StatefulSet, Namespace: "shop", Name: testName}
	next := assignment.State{Slots: assignment.Slots{0: "b"}}
	worker := aWorker(map[string]any{})
	worker["kind"] = kinds.StatefulSet
	server, s := newShelf(t, map[string]map[string]any{path: worker})
	before := get(t, s, ref)
	server.change(path, "resourceVersion", "2") // another pod wrote
	if _, err := s.Propose(t.Context(), before, next); !errors.Is(err, request.ErrConflict) {
		t.Errorf("a write over the write of another pod: %v", err)
	}
	if _, err := s.Propose(t.Context(), get(t, s, ref), next); err != nil {
		t.Errorf("a write of what was read: %v", err)
	}
}

// Admission may change what is written. The error says which annotations, and nothing counts as written.
func TestAProposalThatIsNotKept(t *testing.T) {
	for name, admits := range map[string]func(annotations map[string]any){
		"it is dropped":   func(a map[string]any) { delete(a, assignment.Key) },
		"it is changed":   func(a map[string]any) { a[assignment.Key] = "{}" },
		"a request is":    func(a map[string]any) { delete(a, assignment.HandoverKey) },
		"the row is":      func(a map[string]any) { delete(a, assignment.PartitionOwnersKey) },
		"it is no map":    func(a map[string]any) { a[assignment.Key] = "no" },
		"something comes": func(a map[string]any) { a[assignment.HandoverKey] = `{"0":"z"}` },
	} {
		server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(nil)})
		server.admits = func(o map[string]any) { admits(metaOf(o)["annotations"].(map[string]any)) } //nolint:errcheck,forcetypeassert // it was written
		_, err := s.Propose(t.Context(), get(t, s, theRef()), assignment.State{
			Slots: assignment.Slots{0: "a"}, Handover: assignment.Slots{0: "b"}, Row: &assignment.Row{Count: 1, Strategy: "range"},
		})
		if !errors.Is(err, request.ErrNotKept) || request.Temporary(err) || !strings.Contains(err.Error(), "Deployment/worker in namespace shop") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Another layout of what was written, and other annotations, are no loss.
func TestWhatIsKeptInAnotherForm(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(nil)})
	server.admits = func(o map[string]any) {
		a := metaOf(o)["annotations"].(map[string]any) //nolint:errcheck,forcetypeassert // it was written
		a[assignment.Key], a["team"] = `{ "0": "a" }`, "x"
	}
	if _, err := s.Propose(t.Context(), get(t, s, theRef()), assignment.State{Slots: assignment.Slots{0: "a"}}); err != nil {
		t.Error(err)
	}
}

// A write leaves alone what stays as it is.
func TestWhatStaysIsNotWritten(t *testing.T) {
	s := withPartitions()
	patch := func(from Owner, next assignment.State) string {
		body, err := proposalPatch(from, next.Encode())
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	next := withPartitions()
	next.Slots[1] = "b"
	if got := patch(ownerOf(t, s, nil), next); strings.Contains(got, "sticky") || !strings.Contains(got, `\"1\":\"b\"`) {
		t.Errorf("partitions that stay are written, or the map is not: %s", got)
	}
	next.Row = nil
	if got := patch(ownerOf(t, s, nil), next); strings.Count(got, `"remove"`) != 1 {
		t.Errorf("partitions that end are not removed: %s", got)
	}
	if got := patch(ownerOf(t, s, map[string]string{assignment.PartitionOwnersKey: ""}), next); strings.Count(got, `"remove"`) != 1 {
		t.Errorf("an empty row stays: %s", got)
	}
}
