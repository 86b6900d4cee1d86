package store

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/rollout"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

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
		if err := s.EachFullPod(t.Context(), "shop", metav1.ListOptions{}, func() {}, func(*unstructured.Unstructured) {}); apierrors.ReasonForError(err) != status.Reason || asked != 2 {
			t.Errorf("%s: EachFullPod returns %v after %d requests", name, err, asked)
		}
	}
}

// An owner whose pods cannot be counted is no owner of one replica.
func TestAnOwnerThatCannotBeReadIsAnError(t *testing.T) {
	worker := aWorker(nil)
	worker["spec"] = map[string]any{"replicas": 3}
	_, s := newShelf(t, map[string]map[string]any{ownerPath: worker})
	if o, err := s.GetOwner(t.Context(), theRef()); err == nil || !strings.Contains(err.Error(), "spec.selector") {
		t.Errorf("%+v, %v", o, err)
	}
}

// A pod's revision is its ReplicaSet's, and no other controller gives it one.
func TestARevisionIsThatOfTheReplicaSet(t *testing.T) {
	set := aWorker(map[string]any{"deployment.kubernetes.io/revision": "3"})
	set["kind"], set["status"] = kinds.ReplicaSet, map[string]any{"availableReplicas": 2}
	const setPath = "/apis/apps/v1/namespaces/shop/replicasets/worker"
	by := func(apiVersion, kind, name string) *metav1.PartialObjectMetadata {
		yes := true
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker-a", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, UID: "r", Controller: &yes},
		}}}
	}
	for name, tc := range map[string]struct {
		pod  *metav1.PartialObjectMetadata
		want rollout.Revision
		err  error
	}{
		"a ReplicaSet":                 {by(testAPIVersion, kinds.ReplicaSet, testName), rollout.Revision{Number: "3", Available: 2}, nil},
		"one that is gone":             {by(testAPIVersion, kinds.ReplicaSet, "other"), rollout.Revision{}, request.ErrGone},
		"a StatefulSet":                {by(testAPIVersion, kinds.StatefulSet, testName), rollout.Revision{}, nil},
		"a ReplicaSet of another kind": {by("example.com/v1", kinds.ReplicaSet, testName), rollout.Revision{}, nil},
		"none":                         {&metav1.PartialObjectMetadata{}, rollout.Revision{}, nil},
	} {
		_, s := newShelf(t, map[string]map[string]any{setPath: set})
		got, err := s.RevisionOf(t.Context(), tc.pod)
		if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	owner := Owner{UID: "d", Rollout: rollout.View{Revision: "3"}}
	for name, tc := range map[string]struct {
		revision rollout.Revision
		owner    Owner
		want     bool
	}{
		"the Deployment's number":          {rollout.Revision{Number: "3", Controller: "d"}, owner, true},
		"another number":                   {rollout.Revision{Number: "2", Controller: "d"}, owner, false},
		"the number, of one deleted":       {rollout.Revision{Number: "3", Controller: "before"}, owner, false},
		"the number, left without owner":   {rollout.Revision{Number: "3"}, owner, false},
		"the Deployment has no number yet": {rollout.Revision{Controller: "d"}, Owner{UID: "d"}, false},
	} {
		if got := tc.revision.Current(tc.owner.Rollout, tc.owner.UID); got != tc.want {
			t.Errorf("%s: current is %t", name, got)
		}
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
		"a Deployment's pod has none":    {kind: kinds.Deployment, pod: "worker-3"},
		"the label of a StatefulSet":     {kind: kinds.StatefulSet, pod: "worker-x", labels: map[string]string{kinds.PodIndexLabel: "3"}, want: 3, ok: true},
		"the end of the name":            {kind: kinds.StatefulSet, pod: "worker-4", want: 4, ok: true},
		"the first":                      {kind: kinds.StatefulSet, pod: "worker-0", want: 0, ok: true},
		"counted from the start":         {kind: kinds.StatefulSet, start: 5, pod: "worker-7", want: 2, ok: true},
		"below the start":                {kind: kinds.StatefulSet, start: 5, pod: "worker-4"},
		"a name that ends otherwise":     {kind: kinds.StatefulSet, pod: "worker-x"},
		"the label of a Job":             {kind: kinds.Job, labels: map[string]string{kinds.CompletionIndexLabel: "2"}, want: 2, ok: true},
		"the annotation of a Job":        {kind: kinds.Job, ann: map[string]string{kinds.CompletionIndexLabel: "1"}, want: 1, ok: true},
		"a Job whose pods have no index": {kind: kinds.Job, pod: "worker-3"},
	} {
		o := Owner{Ref: refOf(t, tc.kind), OrdinalStart: tc.start}
		got, ok := o.Ordinal(&metav1.ObjectMeta{Name: tc.pod, Labels: tc.labels, Annotations: tc.ann})
		if ok != tc.ok || (ok && got != tc.want) {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}

func TestAPodIsCondemnedWhoseOrdinalIsNoneAnyMore(t *testing.T) {
	for kind, want := range map[string]string{kinds.StatefulSet: "worker-4 worker-8", kinds.Deployment: "", kinds.ReplicaSet: "", kinds.Job: ""} {
		o, got := Owner{Ref: refOf(t, kind), OrdinalStart: 5, Count: 3}, []string{}
		for _, pod := range []string{"worker-4", "worker-5", "worker-7", "worker-8", "worker-x"} {
			if o.Condemned(&metav1.ObjectMeta{Name: pod, Labels: map[string]string{kinds.CompletionIndexLabel: "9"}}) {
				got = append(got, pod)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of a %s, %v are condemned, want %s", kind, got, want)
		}
	}
}

func TestWhatAnEventSays(t *testing.T) {
	server, s := newShelf(t, nil)
	event := kubeevent.Event{
		About: Owner{Ref: theRef(), UID: "o"}.About(), Namespace: "shop", Reporter: "worker-a",
		Type: kubeevent.Warning, Reason: "AssignmentChanged", Message: "by kubectl",
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
	about := corev1.ObjectReference{APIVersion: testAPIVersion, Kind: kinds.Deployment, Namespace: "shop", Name: testName, UID: "o"}
	second := testTime.Truncate(time.Second)
	if got.Namespace != "shop" || got.InvolvedObject != about || got.Type != "Warning" || got.Reason != "AssignmentChanged" || got.Message != "by kubectl" ||
		got.Count != 1 || !got.FirstTimestamp.Time.Equal(second) || !got.LastTimestamp.Time.Equal(second) ||
		got.ReportingInstance != "worker-a" || got.ReportingController != "idalloc.dev/allocator" || got.Source.Component != "idalloc" {
		t.Errorf("%s", server.body)
	}
	server.refusal = &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists}
	if err := s.Tell(t.Context(), event); err != nil {
		t.Errorf("another pod has told it in this minute: %v", err)
	}
	server.refusal = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "User cannot create resource"}
	var forbidden *request.ForbiddenError
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
	if event := <-w.ResultChan(); event.Object == nil || event.Object.(*wire.Object).Name != testName { //nolint:errcheck,forcetypeassert // that of owners
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

// A connection that cannot be as it was asked for is refused, not made in another way.
func TestAStoreThatCannotBeMade(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"a certificate that is not there": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/no/such/file"}},
		"a host that is none":             {Host: "http://[::1"},
	} {
		if s, err := New(config, nil); err == nil || s != nil || !strings.Contains(err.Error(), "client: ") {
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
		s, err := New(config, testclock.NewFakeClock(testTime))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetOwner(t.Context(), theRef()); err != nil || agent != want {
			t.Errorf("the server hears of %q, %v, want %q", agent, err, want)
		}
		if config.UserAgent != given {
			t.Errorf("the caller's config has %q now", config.UserAgent)
		}
	}
}
