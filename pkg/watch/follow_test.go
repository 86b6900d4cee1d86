package watch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// until waits until what a stream says is as wanted.
func until(t *testing.T, changed <-chan struct{}, what string, is func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !is() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("in vain: %s", what)
		}
	}
}

// podsAPI is an API server with one list of pods, and a watch for each value of watches.
func podsAPI(t *testing.T, watches chan apiwatch.Interface, refuse error) API[*metav1.PartialObjectMetadata] {
	t.Helper()
	check := func(ctx context.Context, o metav1.ListOptions, bounded bool) {
		if o.FieldSelector != "metadata.name=worker-0" {
			t.Errorf("a request for %q", o.FieldSelector)
		}
		if _, is := ctx.Deadline(); is != bounded {
			t.Errorf("a request has a time limit: %t", is)
		}
	}
	return API[*metav1.PartialObjectMetadata]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			check(ctx, o, true)
			list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			list.Items = append(list.Items, *testPod("1", "r", "1"))
			return list, nil
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			check(ctx, o, false)
			if o.SendInitialEvents != nil {
				return nil, refuse
			}
			select {
			case w := <-watches:
				return w, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Type: &metav1.PartialObjectMetadata{},
	}
}

// Whatever a server says to a streaming list, a stream lists: it does not wait for that server to think better of it.
func TestAStreamListsWhereItCannotStreamLists(t *testing.T) {
	for name, refuse := range map[string]error{
		"a server of an earlier version": apierrors.NewBadRequest("unknown parameter"),
		"a busy server":                  apierrors.NewTooManyRequests("busy", 3600),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			watches := make(chan apiwatch.Interface, 1)
			api, begin := podsAPI(t, watches, refuse), make(chan struct{})
			list := api.List
			api.List = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { <-begin; return list(ctx, o) }
			s := Follow(ctx, "pod", api, ByName("worker-0"), time.Now, logr.Discard())
			if s.Synced() {
				t.Error("it is synced before it has begun")
			}
			close(begin)
			until(t, s.Changed(), "a list", s.Synced)
			if all := s.Objects(); len(all) != 1 || all[0].UID != "1" {
				t.Errorf("it has %v", all)
			}
			if _, why := s.Stale(); why == nil {
				t.Error("it is up before it watches")
			}
			events := apiwatch.NewFake()
			watches <- events
			until(t, s.Changed(), "a watch", func() bool { _, why := s.Stale(); return why == nil })
			events.Modify(testPod("1", "s", "2"))
			until(t, s.Changed(), "a change", func() bool {
				pod, ok := s.Get("worker-0")
				return ok && pod.Annotations[receipt.Key] == "s" && len(pod.ManagedFields) == 1
			})
			events.Delete(testPod("1", "s", "3"))
			until(t, s.Changed(), "an end", func() bool { _, ok := s.Get("worker-0"); return !ok && len(s.Objects()) == 0 })
			cancel()
			<-s.Done()
		})
	}
}

// The reflector logs an error at every try, which is a detail.
func TestWhatGoesWrongIsADetailInTheLog(t *testing.T) {
	for level, told := range map[int]bool{0: false, 1: true} {
		var mu sync.Mutex
		var lines []string
		log := funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}, funcr.Options{Verbosity: level})
		ctx, cancel := context.WithCancel(t.Context())
		lists := make(chan struct{})
		api := podsAPI(t, nil, apierrors.NewResourceExpired("which says nothing of the stream"))
		api.List = func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			select {
			case lists <- struct{}{}:
			case <-ctx.Done():
			}
			return nil, errors.New("broken")
		}
		s := Follow(ctx, "worker's pod", api, ByName("worker-0"), time.Now, log)
		<-lists
		<-lists // what the first one came to is logged by now
		if _, why := s.Stale(); why == nil || why.Error() != "broken" {
			t.Errorf("stale because of %v", why)
		}
		cancel()
		<-s.Done()
		mu.Lock()
		if all := strings.Join(lines, "\n"); strings.Contains(all, "worker's pod") != told || strings.Contains(all, "broken") != told || (!told && all != "") {
			t.Errorf("at level %d the log says %q", level, all)
		}
		mu.Unlock()
	}
}

// A server that can stream lists sends the objects it has, and then a bookmark. What is kept of each is trimmed.
func TestAStreamOfAServerThatStreamsLists(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := apiwatch.NewFake()
	api := podsAPI(t, nil, nil)
	api.List = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		t.Error("it lists")
		return nil, errors.New("no")
	}
	api.Watch = func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) { return events, nil }
	api.Trim = trimPod
	s := Follow(ctx, "pod", api, ByName("worker-0"), time.Now, logr.Discard())
	bookmark := testPod("", "", "9")
	bookmark.Annotations[metav1.InitialEventsAnnotationKey] = "true"
	events.Add(testPod("1", "r", "7"))
	events.Action(apiwatch.Bookmark, bookmark)
	until(t, s.Changed(), "a list", s.Synced)
	if pod, ok := s.Get("worker-0"); !ok || pod.UID != "1" || pod.ManagedFields != nil || len(s.Objects()) != 1 {
		t.Errorf("it has %+v, %t", pod, ok)
	}
	cancel()
	<-s.Done()
}

// A busy server gets no list for a watch that it refuses.
func TestAStreamAsksABusyServerForTheWatchAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watches := make(chan apiwatch.Interface, 1)
	api := podsAPI(t, watches, errors.New("no streaming lists"))
	list, watch := api.List, api.Watch
	lists, refused := 0, false
	api.List = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { lists++; return list(ctx, o) }
	api.Watch = func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
		if o.SendInitialEvents == nil && !refused {
			refused = true
			return nil, apierrors.NewTooManyRequests("busy", 1)
		}
		return watch(ctx, o)
	}
	s := Follow(ctx, "pod", api, ByName("worker-0"), time.Now, logr.Discard())
	watches <- apiwatch.NewFake()
	until(t, s.Changed(), "a watch", func() bool { _, why := s.Stale(); return s.Synced() && why == nil })
	cancel()
	<-s.Done()
	if lists != 1 || !refused {
		t.Errorf("%d lists", lists)
	}
}

// What a later list does not have is gone.
func TestALaterList(t *testing.T) {
	s := &PodStream{objects: map[string]*metav1.PartialObjectMetadata{}, changed: make(chan struct{}, 1), now: time.Now}
	k := (*sink[*metav1.PartialObjectMetadata])(s)
	other := testPod("2", "", "2")
	other.Name = "worker-1"
	for _, list := range [][]any{{testPod("1", "", "1")}, {other}} {
		if err := k.Replace(list, ""); err != nil {
			t.Fatal(err)
		}
	}
	if all := s.Objects(); len(all) != 1 || all[0].Name != "worker-1" {
		t.Errorf("it has %v", all)
	}
}

// What a plan asks of a pod stays.
func TestWhatIsKeptOfAPod(t *testing.T) {
	born, end := metav1.NewTime(time.UnixMilli(1795219000000)), metav1.NewTime(time.UnixMilli(1795219200000))
	pod := testPod("1", "r", "7")
	pod.CreationTimestamp, pod.DeletionTimestamp = born, &end
	pod.Labels[kinds.PodIndexLabel], pod.Annotations[kinds.CompletionIndexLabel] = "4", "5"
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "rs", Controller: new(true)}}
	kept := trimPod(pod)
	controller := metav1.GetControllerOf(kept)
	if kept.Name != "worker-0" || kept.UID != "1" || !kept.CreationTimestamp.Equal(&born) || kept.DeletionTimestamp == nil || !kept.DeletionTimestamp.Equal(&end) {
		t.Errorf("kept %+v", kept.ObjectMeta)
	}
	if kept.Labels[kinds.PodIndexLabel] != "4" || kept.Annotations[kinds.CompletionIndexLabel] != "5" || len(kept.Labels) != 1 || len(kept.Annotations) != 2 {
		t.Errorf("kept labels %v, annotations %v", kept.Labels, kept.Annotations)
	}
	if controller == nil || controller.UID != "rs" || len(kept.OwnerReferences) != 1 {
		t.Errorf("kept owners %v", kept.OwnerReferences)
	}
}

// watched is an API server with one list, whose watch sends what the test says.
type watched struct {
	list   any
	events chan any
	// held, if set, keeps lists waiting until it is closed.
	held chan struct{}

	mu      sync.Mutex
	queries []string
}

func (s *watched) start(t *testing.T, clock *testclock.FakeClock) *store.Store {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	out, err := store.New(&rest.Config{Host: server.URL, QPS: -1}, clock)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ServeHTTP implements http.Handler.
func (s *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.queries = append(s.queries, r.URL.Path+"?"+r.URL.Query().Get("labelSelector")+"&"+r.URL.Query().Get("fieldSelector"))
	s.mu.Unlock()
	if r.URL.Query().Get("sendInitialEvents") != "" {
		apifake.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "unknown parameter")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		if s.held != nil {
			<-s.held
		}
		send(w, s.list)
		return
	}
	flusher, _ := w.(http.Flusher)
	for {
		flusher.Flush()
		select {
		case e := <-s.events:
			send(w, e)
		case <-r.Context().Done():
			return
		}
	}
}

// send writes what a test has as JSON. The client may be gone.
func send(w io.Writer, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(append(text, '\n'))
}

// asked returns the distinct paths and selectors of all requests so far.
func (s *watched) asked() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]bool{}
	for _, q := range s.queries {
		out[q] = true
	}
	return out
}

// moment is the Deployment with a map in which this pod has slot 0, at a version, as an event of this type.
func moment(eventType, pod string, version int, do func(o *unstructured.Unstructured)) any {
	o := apifake.Assigned(2, assignment.State{Slots: assignment.Slots{0: pod}})
	o.SetNamespace(apifake.Namespace)
	o.SetResourceVersion(strconv.Itoa(version))
	if do != nil {
		do(o)
	}
	return map[string]any{"type": eventType, "object": o.Object}
}

func objectOf(event any) any {
	e, _ := event.(map[string]any)
	return e["object"]
}

func TestAnOwnersMoments(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := &watched{events: make(chan any), held: make(chan struct{}), list: map[string]any{
		"apiVersion": apifake.Apps, "kind": "DeploymentList", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{objectOf(moment("", "a", 1, nil))},
	}}
	clock := testclock.NewFakeClock(time.UnixMilli(1795219200123))
	s := Owner(ctx, server.start(t, clock), kinds.Ref{APIVersion: apifake.Apps, Kind: kinds.Deployment, Namespace: apifake.Namespace, Name: apifake.Worker}, logr.Discard())
	if owner, ok, err := s.Latest(); ok || err != nil || owner.Name != "" {
		t.Errorf("before anything was read: %+v, %t, %v", owner, ok, err)
	}
	close(server.held)
	says := func(what string, is func(owner store.Owner, ok bool, err error) bool) {
		t.Helper()
		until(t, s.Changed(), what, func() bool { return is(s.Latest()) })
		if owner, ok, err := s.Latest(); !is(owner, ok, err) { // nothing has changed, so it says the same
			t.Errorf("%s, and then %+v, %t, %v", what, owner, ok, err)
		}
	}
	holds := func(pod string) func(store.Owner, bool, error) bool {
		return func(o store.Owner, ok bool, err error) bool {
			return ok && err == nil && o.Record.State.Slots[0] == pod && o.Count == 2 && o.Kind == kinds.Deployment
		}
	}
	says("the list", holds("a"))
	server.events <- moment("MODIFIED", "b", 2, nil)
	says("another holder", holds("b"))
	server.events <- moment("MODIFIED", "f", 6, func(o *unstructured.Unstructured) {
		o.Object["spec"].(map[string]any)["strategy"] = map[string]any{"rollingUpdate": map[string]any{"maxSurge": "many"}} //nolint:errcheck,forcetypeassert // made above
	})
	says("a spec that cannot be read", func(o store.Owner, ok bool, err error) bool { return !ok && err != nil && o.Name == "" })
	server.events <- moment("MODIFIED", "g", 7, nil)
	says("a spec that can be read again", holds("g"))

	server.events <- moment("MODIFIED", "h", 8, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{assignment.Key: "{"})
	})
	says("a map that cannot be read", func(o store.Owner, ok bool, err error) bool {
		return ok && err == nil && len(o.Record.Problems) == 1 && len(o.Record.State.Slots) == 0
	})

	server.events <- moment("DELETED", "h", 9, nil)
	says("its end", func(o store.Owner, ok bool, err error) bool { return !ok && err == nil && o.Name == "" })
	if asked, want := server.asked(), "/apis/apps/v1/namespaces/"+apifake.Namespace+"/deployments?&metadata.name=worker"; !asked[want] || len(asked) != 1 {
		t.Errorf("it asked for %v, want %s", asked, want)
	}
}

func TestStreamsOfPods(t *testing.T) {
	owned := apifake.Pod("worker-0")
	owned.SetNamespace(apifake.Namespace)
	owned.SetResourceVersion("1")
	list := map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{"resourceVersion": "1"},
		"items": []any{map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": owned.Object["metadata"]}},
	}
	for want, tc := range map[string]struct {
		follow func(ctx context.Context, s *store.Store) *PodStream
		whole  bool
	}{
		"/api/v1/namespaces/" + apifake.Namespace + "/pods?&metadata.name=worker-0": {
			func(ctx context.Context, s *store.Store) *PodStream {
				return Pod(ctx, s, apifake.Namespace, "worker-0", logr.Discard())
			}, true,
		},
		"/api/v1/namespaces/" + apifake.Namespace + "/pods?app=worker&" + store.LivePods: {
			func(ctx context.Context, s *store.Store) *PodStream {
				return Selected(ctx, s, apifake.Namespace, "app=worker", logr.Discard())
			}, false,
		},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := &watched{events: make(chan any), list: list}
			s := tc.follow(ctx, server.start(t, testclock.NewFakeClock(time.Now())))
			until(t, s.Changed(), "a watch", func() bool { _, why := s.Stale(); return s.Synced() && why == nil })
			pod, ok := s.Get("worker-0")
			if !ok || (pod.Labels["app"] == "worker") != tc.whole {
				t.Errorf("it has %+v, %t", pod, ok)
			}
			if asked := server.asked(); !asked[want] || len(asked) != 1 {
				t.Errorf("it asked for %v, want %s", asked, want)
			}
			cancel()
			<-s.Done()
		})
	}
}
