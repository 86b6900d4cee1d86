package watch

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// breaking is an API server behind a proxy that ends each watch at once, after these events.
func breaking(events []apiwatch.Event, streamsLists bool, asked func()) API[*metav1.PartialObjectMetadata] {
	return API[*metav1.PartialObjectMetadata]{
		List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			asked()
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{*testPod("1", "r", "1")}}, nil
		},
		Watch: func(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			asked()
			if o.SendInitialEvents != nil && !streamsLists {
				return nil, errors.New("no streaming lists")
			}
			w := apiwatch.NewFakeWithChanSize(len(events), false)
			for _, e := range events {
				w.Action(e.Type, e.Object)
			}
			w.Stop()
			return w, nil
		},
		Type: &metav1.PartialObjectMetadata{},
	}
}

func failure(err *apierrors.StatusError) apiwatch.Event {
	return apiwatch.Event{Type: apiwatch.Error, Object: &err.ErrStatus}
}

// Whatever ends the streams, a pod asks seldom.
func TestWatchesThatEndAtOnceBeginLaterAndLater(t *testing.T) {
	for name, events := range map[string][]apiwatch.Event{
		"an expired version":            {failure(apierrors.NewResourceExpired("too old"))},
		"a version that is gone":        {failure(apierrors.NewGenericServerResponse(http.StatusGone, "", metav1.SchemeGroupVersion.WithResource("pods").GroupResource(), "", "", 0, false))},
		"a version that is too new":     {failure(apierrors.NewTimeoutError("Too large resource version", 1))},
		"a server error":                {failure(apierrors.NewInternalError(errors.New("etcd")))},
		"a busy server":                 {failure(apierrors.NewTooManyRequests("busy", 1))},
		"nothing":                       nil,
		"a change":                      {{Type: apiwatch.Modified, Object: testPod("1", "s", "2")}},
		"a change and a version's end":  {{Type: apiwatch.Modified, Object: testPod("1", "s", "2")}, failure(apierrors.NewResourceExpired("too old"))},
		"a bookmark, again and again":   {{Type: apiwatch.Bookmark, Object: testPod("1", "s", "2")}},
		"what a streaming list ends in": {{Type: apiwatch.Added, Object: testPod("1", "s", "2")}, {Type: apiwatch.Bookmark, Object: initialEnd()}},
	} {
		for _, streamsLists := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					var requests atomic.Int64 // a list may outlive the stream
					s := Follow(ctx, "pod", breaking(events, streamsLists, func() {
						if requests.Add(1) > 1000 {
							cancel() // they may come without an end at one moment
						}
					}), ByName("worker-0"), time.Now, logr.Discard())
					select {
					case <-time.After(time.Minute):
					case <-ctx.Done():
					}
					cancel()
					<-s.Done()
					if asked := requests.Load(); asked > 60 || asked < 6 {
						t.Errorf("%d requests in a minute", asked)
					}
				})
			})
		}
	}
}

func initialEnd() *metav1.PartialObjectMetadata {
	bookmark := testPod("", "", "9")
	bookmark.Annotations[metav1.InitialEventsAnnotationKey] = "true"
	return bookmark
}

// A watch that has lasted proves that the trouble is over.
func TestAWatchThatLastsEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrake(time.Now)
		waits := func() time.Duration {
			at := time.Now()
			b.wait(t.Context())
			return time.Since(at)
		}
		if took := waits(); took != 0 {
			t.Errorf("the first watch waits for %s", took)
		}
		var longest time.Duration
		for range 20 {
			b.asked(nil)
			longest = waits()
		}
		if longest < 5*time.Second || longest > 10*time.Second {
			t.Errorf("the watch after 20 that ended at once waits for %s", longest)
		}
		b.asked(errors.New("refused"))
		if took := waits(); took != 0 {
			t.Errorf("after a refusal, for which the reflector waits, it waits for %s", took)
		}
		b.asked(nil)
		<-time.After(time.Minute)
		if took := waits(); took != 0 {
			t.Errorf("after a watch of a minute it waits for %s", took)
		}
		b.asked(nil)
		if took := waits(); took > 50*time.Millisecond {
			t.Errorf("after the next one that ended at once it waits for %s", took)
		}
	})
}
