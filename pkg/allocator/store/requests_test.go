package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

const (
	podPath   = "/api/v1/namespaces/shop/pods/worker-a"
	ownerPath = "/apis/apps/v1/namespaces/shop/deployments/worker"
)

// shelf is an API server with a few objects.
type shelf struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	// refusal, if set, is the answer to each write. reading, if set, is the answer to each read.
	refusal, reading *metav1.Status
	// sent are the writes that came: method, path and field manager.
	sent []string
	// body is that of the last write.
	body []byte
}

func newShelf(t *testing.T, objects map[string]map[string]any) (*shelf, *Store) {
	t.Helper()
	s := &shelf{objects: objects}
	return s, answering(t, s.ServeHTTP)
}

func aPod(annotations, labels map[string]any) map[string]any {
	meta := map[string]any{"name": "worker-a", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	if labels != nil {
		meta["labels"] = labels
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta}
}

// change changes the metadata of an object.
func (s *shelf) change(path, key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path]["metadata"].(map[string]any)[key] = value //nolint:errcheck,forcetypeassert // a test's own object
}

func (s *shelf) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", jsonType)
	o, there := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodGet && s.reading != nil:
		say(w, s.reading)
		return
	case r.Method == http.MethodGet && !there:
		say(w, missing(r.URL.Path))
		return
	case r.Method == http.MethodGet:
		send(w, o)
		return
	}
	s.sent = append(s.sent, r.Method+" "+r.URL.Path+" as "+r.URL.Query().Get("fieldManager"))
	s.body, _ = io.ReadAll(r.Body)
	if s.refusal != nil {
		say(w, s.refusal)
		return
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(s.body)
		return
	}
	after, err := patched(o, s.body)
	if err != nil {
		say(w, &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error()})
		return
	}
	s.objects[r.URL.Path] = after
	send(w, after)
}

func patched(o map[string]any, body []byte) (after map[string]any, err error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	text, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &after)
	return after, err
}

func say(w http.ResponseWriter, s *metav1.Status) {
	said := *s
	said.TypeMeta, said.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	w.WriteHeader(int(said.Code))
	send(w, said)
}

func send(w io.Writer, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text) // the client notices what is missing
}

// missing is what an API server says of an object that it does not have.
func missing(path string) *metav1.Status {
	parts := strings.Split(path, "/")
	group := ""
	if parts[1] == "apis" {
		group = parts[2]
	}
	said := apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: parts[len(parts)-2]}, parts[len(parts)-1]).ErrStatus
	return &said
}

func read(t *testing.T, s *Store) *metav1.PartialObjectMetadata {
	t.Helper()
	pod, err := s.GetPod(t.Context(), "shop", "worker-a")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// locks is a receipt for slot 3.
func locks() *assignment.Receipt {
	return &assignment.Receipt{UID: "u", Owner: "Deployment/worker", ID: 3, Epoch: 7}
}

func TestAReceiptComesAndGoes(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
	swap := func(from *metav1.PartialObjectMetadata, next *assignment.Receipt, renew bool) *metav1.PartialObjectMetadata {
		t.Helper()
		written, err := s.SwapReceipt(t.Context(), from, next, renew)
		if err != nil {
			t.Fatal(err)
		}
		if now := read(t, s); !maps.Equal(now.Annotations, written.Annotations) || !maps.Equal(now.Labels, written.Labels) {
			t.Errorf("the pod is %v %v, and SwapReceipt returns %v %v", now.Annotations, now.Labels, written.Annotations, written.Labels)
		}
		return written
	}
	text := locks().Encode()
	bare := read(t, s)
	first := swap(bare, locks(), false)
	if first.Annotations[assignment.ReceiptKey] != text || first.Annotations[assignment.DeletionCostKey] != "2147483644" ||
		first.Labels[assignment.InstanceIDLabel] != "3" || first.Labels[assignment.OwnerLabel] != "deployment.worker" {
		t.Errorf("with slot 3: %v %v", first.Annotations, first.Labels)
	}
	if want := "PATCH " + podPath + " as " + assignment.FieldManager; len(server.sent) != 1 || server.sent[0] != want {
		t.Errorf("sent %q, want %q", server.sent, want)
	}
	if same := swap(first, locks(), false); server.writes() != 1 || same != first {
		t.Errorf("the same receipt is sent: %q", server.sent)
	}
	renewed := swap(first, locks(), true)
	again := swap(renewed, locks(), true)
	for _, pod := range []*metav1.PartialObjectMetadata{renewed, again} {
		if got := pod.Annotations[assignment.ReceiptKey]; got == text || strings.TrimRight(got, " \t") != text {
			t.Errorf("renewed, it is %q", got)
		}
	}
	if renewed.Annotations[assignment.ReceiptKey] == again.Annotations[assignment.ReceiptKey] {
		t.Error("twice renewed, the receipt has the same bytes")
	}
	if kept := swap(again, locks(), false); kept != again {
		t.Error("a renewed receipt is written once more for its white space")
	}
	if _, err := s.SwapReceipt(t.Context(), renewed, locks(), true); !errors.Is(err, ErrConflict) {
		t.Errorf("a late write of the same receipt: %v", err)
	}
	gone := swap(again, nil, false)
	if len(gone.Annotations) != 0 || len(gone.Labels) != 0 {
		t.Errorf("without a receipt: %v %v", gone.Annotations, gone.Labels)
	}
}

// The labels by which others find a pod come back though its receipt is right.
func TestLabelsComeBack(t *testing.T) {
	for name, change := range map[string]func(labels, annotations map[string]any){
		"the id is gone":        func(l, _ map[string]any) { delete(l, assignment.InstanceIDLabel) },
		"the id is another":     func(l, _ map[string]any) { l[assignment.InstanceIDLabel] = "4" },
		"the owner is gone":     func(l, _ map[string]any) { delete(l, assignment.OwnerLabel) },
		"the deletion cost too": func(_, a map[string]any) { delete(a, assignment.DeletionCostKey) },
	} {
		labels := map[string]any{assignment.InstanceIDLabel: "3", assignment.OwnerLabel: "deployment.worker"}
		annotations := map[string]any{assignment.ReceiptKey: locks().Encode(), assignment.DeletionCostKey: "2147483644"}
		want := maps.Clone(labels)
		change(labels, annotations)
		_, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, labels)})
		if _, err := s.SwapReceipt(t.Context(), read(t, s), locks(), false); err != nil {
			t.Fatal(err)
		}
		now := read(t, s)
		if fmt.Sprint(now.Labels) != fmt.Sprint(want) || now.Annotations[assignment.DeletionCostKey] != "2147483644" {
			t.Errorf("%s: then %v %v", name, now.Labels, now.Annotations)
		}
	}
}

// A pod without an id keeps a deletion cost that somebody else gave it, and loses idalloc's own.
func TestSomebodyElsesDeletionCost(t *testing.T) {
	for name, tc := range map[string]struct {
		cost   string
		label  any
		keeps  bool
		before string
	}{
		"idalloc's own":                {cost: "2147483644", label: "3"},
		"somebody else's":              {cost: "100", label: "3", keeps: true},
		"one of a pod without a label": {cost: "2147483644", keeps: true},
		"one beside a damaged label":   {cost: "2147483647", label: "three", keeps: true},
	} {
		labels := map[string]any{"app": testName}
		if tc.label != nil {
			labels[assignment.InstanceIDLabel] = tc.label
		}
		annotations := map[string]any{assignment.ReceiptKey: locks().Encode(), assignment.DeletionCostKey: tc.cost}
		_, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, labels)})
		if _, err := s.SwapReceipt(t.Context(), read(t, s), &assignment.Receipt{UID: "u", Owner: "Deployment/worker", Waits: true}, false); err != nil {
			t.Fatal(err)
		}
		now := read(t, s)
		cost, there := now.Annotations[assignment.DeletionCostKey]
		_, labelled := now.Labels[assignment.InstanceIDLabel]
		if there != tc.keeps || (there && cost != tc.cost) || labelled || now.Labels["app"] != testName {
			t.Errorf("%s: then %v %v", name, now.Annotations, now.Labels)
		}
	}
}

// A pod that takes a slot gets the slot's receipt, label and cost in place of what stood there.
func TestAReceiptReplacesWhatWasThere(t *testing.T) {
	before := assignment.Receipt{UID: "u", Owner: "Deployment/worker", ID: 4, Epoch: 6}
	annotations := map[string]any{assignment.ReceiptKey: before.Encode(), assignment.DeletionCostKey: "100"}
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(annotations, map[string]any{"app": testName})})
	pod := read(t, s)
	server.change(podPath, "labels", map[string]any{"app": testName, assignment.InstanceIDLabel: "9"}) // labels follow from the receipt, whoever sets them
	if _, err := s.SwapReceipt(t.Context(), pod, locks(), false); err != nil {
		t.Fatal(err)
	}
	now := read(t, s)
	if now.Annotations[assignment.ReceiptKey] != locks().Encode() || now.Annotations[assignment.DeletionCostKey] != "2147483644" || now.Labels[assignment.InstanceIDLabel] != "3" {
		t.Errorf("then %v %v", now.Annotations, now.Labels)
	}
}

// A list that the server refuses from the first page on ends with an error.
func TestAListThatIsRefused(t *testing.T) {
	for name, status := range map[string]*metav1.Status{
		"a moment that is forgotten": {Code: http.StatusGone, Reason: metav1.StatusReasonExpired},
		"too many requests":          {Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "quota"},
	} {
		asked := 0
		s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > 10 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", jsonType)
			say(w, status)
		})
		if err := s.EachPod(t.Context(), "shop", metav1.ListOptions{}, func(*metav1.PartialObjectMetadata) {}); apierrors.ReasonForError(err) != status.Reason {
			t.Errorf("%s: EachPod returns %v", name, err)
		}
		if err := s.EachFullPod(t.Context(), "shop", metav1.ListOptions{}, func(*unstructured.Unstructured) {}); apierrors.ReasonForError(err) != status.Reason || asked != 2 {
			t.Errorf("%s: EachFullPod returns %v after %d requests", name, err, asked)
		}
	}
}

// After a refusal the object itself tells whether the write met a change, or can never be accepted.
func TestWhatARefusedWriteMeans(t *testing.T) {
	invalid := &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "invalid"}
	conflict := &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "changed"}
	quota := &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "quota"}
	broken := &metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd"}
	known := []error{ErrConflict, ErrAmbiguous, ErrGone}
	type outcome struct {
		refusal *metav1.Status
		change  func(*shelf, string)
		want    error // nil is the server's own
	}
	common := map[string]outcome{
		"nothing has changed":       {invalid, func(*shelf, string) {}, nil},
		"another refusal":           {quota, func(s *shelf, path string) { s.change(path, "uid", "other") }, nil},
		"a conflict, by the server": {conflict, func(*shelf, string) {}, ErrConflict},
		"an error of the server":    {broken, func(*shelf, string) {}, ErrAmbiguous},
		"the object is gone":        {invalid, func(s *shelf, path string) { delete(s.objects, path) }, ErrGone},
		"nobody knows":              {invalid, func(s *shelf, _ string) { s.reading = quota }, ErrConflict},
		"the annotations have gone": {invalid, func(s *shelf, path string) {
			s.change(path, "annotations", nil)
			s.change(path, "generation", 9)
			s.change(path, "resourceVersion", "9")
		}, ErrConflict},
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
	receipts["another pod has the name"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "uid", "other") }, ErrGone}
	receipts["a label has changed"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "labels", map[string]any{"app": "other"}) }, ErrConflict}
	receipts["only its version is another"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "resourceVersion", "9") }, nil}
	for name, tc := range receipts {
		server, s := newShelf(t, map[string]map[string]any{podPath: aPod(map[string]any{"a": "b"}, map[string]any{"app": testName})})
		pod := read(t, s)
		server.refusal = tc.refusal
		tc.change(server, podPath)
		_, err := s.SwapReceipt(t.Context(), pod, locks(), false)
		check("W2, "+name, err, tc)
	}
	owners := maps.Clone(common)
	owners["another owner has the name"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "uid", "other") }, ErrConflict}
	owners["its generation is another"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "generation", 9) }, ErrConflict}
	owners["only its status has changed"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "resourceVersion", "9") }, nil}
	owners["it has lost its annotations"] = outcome{invalid, func(s *shelf, path string) { s.change(path, "annotations", nil) }, ErrConflict}
	for name, tc := range owners {
		server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(map[string]any{"a": "b"})})
		owner, err := s.Get(t.Context(), theRef())
		if err != nil {
			t.Fatal(err)
		}
		server.refusal = tc.refusal
		tc.change(server, ownerPath)
		_, err = s.Commit(t.Context(), owner, assignment.State{Epoch: 9, Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}})
		check("W1, "+name, err, tc)
	}
}

func theRef() Ref {
	return Ref{APIVersion: testAPIVersion, Kind: Deployment, Namespace: "shop", Name: testName}
}

func aWorker(annotations map[string]any) map[string]any {
	meta := map[string]any{"name": testName, "namespace": "shop", "uid": "o", "resourceVersion": "1", "generation": 7}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": testAPIVersion, "kind": Deployment, "metadata": meta,
		"spec": map[string]any{"replicas": 3, "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}},
	}
}

// A map that nobody tracks is written only if not even the status has changed: the server may track it again.
func TestACommitTestsWhatItWasPlannedOn(t *testing.T) {
	next := assignment.State{Epoch: 9, Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}}
	encoded := map[string]any{}
	for k, v := range (assignment.State{Epoch: 7, Slots: assignment.Slots{1: "b"}, UIDs: assignment.Slots{1: "v"}}).Encode(assignment.DefaultKey, "o") {
		encoded[k] = v
	}
	for name, tc := range map[string]struct {
		annotations map[string]any
		changed     string
		value       any
		want        error
	}{
		"no annotations at all":           {nil, "", nil, nil},
		"a status that changed":           {nil, "resourceVersion", "2", nil},
		"a spec that changed":             {nil, "generation", 8, ErrConflict},
		"an owner that was made again":    {nil, "uid", "p", ErrConflict},
		"a map that nobody tracks":        {encoded, "", nil, nil},
		"its status changed":              {encoded, "resourceVersion", "2", ErrConflict},
		"its generation does not matter":  {encoded, "generation", 8, nil},
		"annotations that came meanwhile": {nil, "annotations", map[string]any{"a": "b"}, ErrConflict},
	} {
		server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(tc.annotations)})
		owner, err := s.Get(t.Context(), theRef())
		if err != nil {
			t.Fatal(err)
		}
		if tc.changed != "" {
			server.change(ownerPath, tc.changed, tc.value)
		}
		written, err := s.Commit(t.Context(), owner, next)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err == nil && (written.Record.State.Epoch != 9 || !maps.Equal(written.Record.State.Slots, next.Slots) || written.UID != "o") {
			t.Errorf("%s: the answer is %+v", name, written)
		}
		if want := "PATCH " + ownerPath + " as " + assignment.FieldManager; len(server.sent) != 1 || server.sent[0] != want {
			t.Errorf("%s: sent %q, want %q", name, server.sent, want)
		}
	}
}

// Annotations do not raise the generation of a StatefulSet, so a write of another pod shows in the resourceVersion alone.
func TestACommitSeesAnothersWriteOnAnyKind(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/shop/statefulsets/worker"
	ref := Ref{APIVersion: testAPIVersion, Kind: StatefulSet, Namespace: "shop", Name: testName}
	state := func(pod string, epoch int64) assignment.State {
		return assignment.State{Epoch: epoch, Slots: assignment.Slots{0: pod}, UIDs: assignment.Slots{0: "u"}}
	}
	worker := aWorker(map[string]any{})
	worker["kind"] = StatefulSet
	server, s := newShelf(t, map[string]map[string]any{path: worker})
	before, err := s.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	server.change(path, "resourceVersion", "2") // another pod wrote
	if _, err := s.Commit(t.Context(), before, state("b", 9)); !errors.Is(err, ErrConflict) {
		t.Errorf("a write over the write of another pod: %v", err)
	}
	now, err := s.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), now, state("b", 9)); err != nil {
		t.Errorf("a write of what was read: %v", err)
	}
}

// A process knows what it wrote itself, also if the answer does not name the writer any more.
func TestTheAnswerToACommitIsKnown(t *testing.T) {
	worker := aWorker(map[string]any{})
	worker["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{ //nolint:errcheck,forcetypeassert // aWorker made it
		"manager": "ancient-changes", "operation": "Update", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + assignment.SealKey: map[string]any{}}}},
	}}
	_, s := newShelf(t, map[string]map[string]any{ownerPath: worker})
	from, err := s.Get(t.Context(), theRef())
	if err != nil {
		t.Fatal(err)
	}
	written, err := s.Commit(t.Context(), from, assignment.State{Epoch: 9, Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}})
	if err != nil || !written.Ancient || !written.Clean() {
		t.Errorf("the answer counts as %s (ancient: %t), %v", written.Trust, written.Ancient, err)
	}
	if again, err := s.Get(t.Context(), theRef()); err != nil || !again.Clean() {
		t.Errorf("read again, it counts as %s, %v", again.Trust, err)
	}
}

// An owner whose pods nobody can count is no owner of one replica.
func TestAnOwnerThatCannotBeReadIsAnError(t *testing.T) {
	worker := aWorker(nil)
	worker["spec"] = map[string]any{"replicas": 3}
	_, s := newShelf(t, map[string]map[string]any{ownerPath: worker})
	if o, err := s.Get(t.Context(), theRef()); err == nil || !strings.Contains(err.Error(), "spec.selector") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhatIsTooLargeIsNotSent(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{ownerPath: aWorker(map[string]any{"big": strings.Repeat("x", 256<<10)})})
	owner, err := s.Get(t.Context(), theRef())
	if err != nil {
		t.Fatal(err)
	}
	var large *assignment.TooLargeError
	_, err = s.Commit(t.Context(), owner, assignment.State{Epoch: 9, Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "u"}})
	if !errors.As(err, &large) || server.writes() != 0 {
		t.Errorf("%v, sent %q", err, server.sent)
	}
}

// A pod's revision is its ReplicaSet's, and no other controller gives it one.
func TestARevisionIsThatOfTheReplicaSet(t *testing.T) {
	set := aWorker(map[string]any{revisionAnnotation: "3"})
	set["kind"], set["status"] = ReplicaSet, map[string]any{"availableReplicas": 2}
	const setPath = "/apis/apps/v1/namespaces/shop/replicasets/worker"
	by := func(apiVersion, kind, name string) *metav1.PartialObjectMetadata {
		yes := true
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker-a", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, UID: "r", Controller: &yes},
		}}}
	}
	for name, tc := range map[string]struct {
		pod  *metav1.PartialObjectMetadata
		want Revision
		err  error
	}{
		"a ReplicaSet":                 {by(testAPIVersion, ReplicaSet, testName), Revision{"3", 2}, nil},
		"one that is gone":             {by(testAPIVersion, ReplicaSet, "other"), Revision{}, ErrGone},
		"a StatefulSet":                {by(testAPIVersion, StatefulSet, testName), Revision{}, nil},
		"a ReplicaSet of another kind": {by("example.com/v1", ReplicaSet, testName), Revision{}, nil},
		"nobody":                       {&metav1.PartialObjectMetadata{}, Revision{}, nil},
	} {
		_, s := newShelf(t, map[string]map[string]any{setPath: set})
		got, err := s.RevisionOf(t.Context(), tc.pod)
		if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	current := Owner{Rollout: Rollout{Revision: "3"}}
	if !(Revision{Number: "3"}).Current(current) || (Revision{Number: "2"}).Current(current) || (Revision{}).Current(Owner{}) {
		t.Error("only the revision of the Deployment's number is current, and none is if it has no number yet")
	}
}

func TestOrdinals(t *testing.T) {
	for name, tc := range map[string]struct {
		kind        string
		start       int
		pod         string
		labels, ann map[string]string
		want        int
		ok          bool
	}{
		"a Deployment's pod has none":    {kind: Deployment, pod: "worker-3"},
		"the label of a StatefulSet":     {kind: StatefulSet, pod: "worker-x", labels: map[string]string{PodIndexLabel: "3"}, want: 3, ok: true},
		"the end of the name":            {kind: StatefulSet, pod: "worker-4", want: 4, ok: true},
		"the first":                      {kind: StatefulSet, pod: "worker-0", want: 0, ok: true},
		"counted from the start":         {kind: StatefulSet, start: 5, pod: "worker-7", want: 2, ok: true},
		"below the start":                {kind: StatefulSet, start: 5, pod: "worker-4"},
		"a name that ends otherwise":     {kind: StatefulSet, pod: "worker-x"},
		"the label of a Job":             {kind: Job, labels: map[string]string{CompletionIndexLabel: "2"}, want: 2, ok: true},
		"the annotation of a Job":        {kind: Job, ann: map[string]string{CompletionIndexLabel: "1"}, want: 1, ok: true},
		"a Job whose pods have no index": {kind: Job, pod: "worker-3"},
	} {
		o := Owner{Ref: Ref{Kind: tc.kind}, OrdinalStart: tc.start}
		got, ok := o.Ordinal(&metav1.ObjectMeta{Name: tc.pod, Labels: tc.labels, Annotations: tc.ann})
		if ok != tc.ok || (ok && got != tc.want) {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}

func TestWhatAnEventSays(t *testing.T) {
	server, s := newShelf(t, nil)
	event := Event{
		About: Owner{Ref: theRef(), UID: "o"}.About(), Namespace: "shop", Reporter: "worker-a",
		Type: EventWarning, Reason: "AssignmentChanged", Message: "somebody",
	}
	if err := s.Tell(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	var got corev1.Event
	if err := json.Unmarshal(server.body, &got); err != nil {
		t.Fatal(err)
	}
	if want := "POST /api/v1/namespaces/shop/events as " + assignment.FieldManager; !slices.Equal(server.sent, []string{want}) {
		t.Errorf("sent %q, want %q", server.sent, want)
	}
	about := corev1.ObjectReference{APIVersion: testAPIVersion, Kind: Deployment, Namespace: "shop", Name: testName, UID: "o"}
	second := testTime.Truncate(time.Second)
	if got.Namespace != "shop" || got.InvolvedObject != about || got.Type != "Warning" || got.Reason != "AssignmentChanged" || got.Message != "somebody" ||
		got.Count != 1 || !got.FirstTimestamp.Time.Equal(second) || !got.LastTimestamp.Time.Equal(second) ||
		got.ReportingInstance != "worker-a" || got.ReportingController != "idalloc.dev/allocator" || got.Source.Component != "idalloc" {
		t.Errorf("%s", server.body)
	}
	server.refusal = &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists}
	if err := s.Tell(t.Context(), event); err != nil {
		t.Errorf("another pod has told it in this minute: %v", err)
	}
	server.refusal = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "User cannot create resource"}
	var forbidden *ForbiddenError
	if err := s.Tell(t.Context(), event); !errors.As(err, &forbidden) || forbidden.Verb != "create" || forbidden.Resource != "events" {
		t.Errorf("a Role without events: %v", err)
	}
}

// Lists and watches of owners send what they were asked to, and pass on what the server says.
func TestOwnersAreListedAndWatched(t *testing.T) {
	var asked []string
	refused := false
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("fieldSelector")+" "+strconv.FormatBool(r.URL.Query().Get("watch") != ""))
		w.Header().Set("Content-Type", jsonType)
		switch {
		case refused:
			say(w, &metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		case r.URL.Query().Get("watch") != "":
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Deployment","metadata":{"name":"worker"}}}`+"\n")
		default:
			_, _ = io.WriteString(w, `{"kind":"DeploymentList","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"worker"}}]}`)
		}
	})
	o := metav1.ListOptions{FieldSelector: "metadata.name=worker"}
	list, err := s.ListObjects(t.Context(), theRef(), o)
	if err != nil || list.ResourceVersion != "5" || len(list.Items) != 1 || list.Items[0].Name != testName {
		t.Errorf("%+v, %v", list, err)
	}
	w, err := s.WatchObjects(t.Context(), theRef(), o)
	if err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Object == nil || event.Object.(*Object).Name != testName { //nolint:errcheck,forcetypeassert // that of owners
		t.Errorf("%+v", event)
	}
	w.Stop()
	const path = "/apis/apps/v1/namespaces/shop/deployments metadata.name=worker "
	if want := []string{path + "false", path + "true"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	refused = true
	if list, err := s.ListObjects(t.Context(), theRef(), o); !apierrors.IsResourceExpired(err) || list != nil {
		t.Errorf("a list that the server refuses: %v, %v", list, err)
	}
	if _, err := s.WatchObjects(t.Context(), theRef(), o); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that the server refuses: %v", err)
	}
}

// What a newer version wrote about partitions stays, so it takes room.
func TestWhatStaysTakesRoom(t *testing.T) {
	update := metav1.ManagedFieldsOperationUpdate
	fields := wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey)
	now := ownerOf(t, withPartitions(), nil, fields)
	newer := ownerOf(t, withPartitions(), map[string]string{assignment.PartitionSealKey: "2:7:more"}, fields)
	row := 0
	for _, k := range assignment.PartitionKeys() {
		row += len(k) + len(newer.Annotations[k])
	}
	if took := newer.Room().Others - now.Room().Others; newer.PartitionTrust != assignment.Unreadable || took != row {
		t.Errorf("the partitions are %s and take %d of %d bytes", newer.PartitionTrust, took, row)
	}
}

// The answer to a write that the server does not track is this process's own, its row of partitions only where it was written with it.
func TestAWriteIsOnesOwn(t *testing.T) {
	for name, sealed := range map[string]bool{"with the row": true, "beside a row that somebody else wrote": false} {
		var m memory
		answer := Owner{Ref: theRef(), UID: types.UID("o"), Ancient: true, Trust: assignment.Foreign, PartitionTrust: assignment.Foreign}
		answer.Record.Partitions.Present, answer.Record.Partitions.Sealed = true, sealed
		if m.wrote(&answer); !answer.Clean() || answer.PartitionsClean() != sealed {
			t.Errorf("%s: the slots are %s, the partitions %s", name, answer.Trust, answer.PartitionTrust)
		}
	}
}

func TestAStoreForAKeyThatIsIdallocsOwn(t *testing.T) {
	for _, key := range []string{assignment.SealKey, "a b"} {
		if s, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, key, nil); err == nil || s != nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, %v", key, s, err)
		}
	}
}

func TestAStoreForAnyOtherKey(t *testing.T) {
	for key, want := range map[string]string{"": assignment.DefaultKey, assignment.DefaultKey: assignment.DefaultKey, "team.example/ids": "team.example/ids"} {
		s, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, key, nil)
		if err != nil || s.Key != want {
			t.Errorf("%q: %+v, %v", key, s, err)
		}
	}
}

// A connection that cannot be as it was asked for is refused, not made in another way.
func TestAStoreThatCannotBeMade(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"a certificate that is not there": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/no/such/file"}},
		"a host that is none":             {Host: "http://[::1"},
	} {
		if s, err := New(config, "", nil); err == nil || s != nil || !strings.Contains(err.Error(), "idalloc: client: ") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// The audit log of the API server says which program wrote.
func TestTheServerKnowsWhoAsks(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		w.Header().Set("Content-Type", jsonType)
		send(w, aWorker(nil))
	}))
	t.Cleanup(server.Close)
	for given, want := range map[string]string{"": rest.DefaultKubernetesUserAgent(), "team/1": "team/1"} {
		config := &rest.Config{Host: server.URL, UserAgent: given}
		s, err := New(config, "", testclock.NewFakeClock(testTime))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), theRef()); err != nil || agent != want {
			t.Errorf("the server hears of %q, %v, want %q", agent, err, want)
		}
		if config.UserAgent != given {
			t.Errorf("the caller's config has %q now", config.UserAgent)
		}
	}
}

// The server need not note when a manager wrote.
func TestTheTimeOfTheLastWrite(t *testing.T) {
	entry := wrote(assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, assignment.SealKey)
	entry.Time = nil
	if at := LastWrite([]metav1.ManagedFieldsEntry{entry}); !at.IsZero() {
		t.Errorf("without a time it is %s", at)
	}
	entry.Time = &metav1.Time{Time: testTime}
	helm := wrote("helm", metav1.ManagedFieldsOperationUpdate)
	helm.Time = &metav1.Time{Time: testTime.Add(time.Hour)}
	if at := LastWrite([]metav1.ManagedFieldsEntry{helm, entry}); !at.Equal(testTime) {
		t.Errorf("it is %s", at)
	}
}
