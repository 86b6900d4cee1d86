//go:build linux

package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// yard is a Deployment of two pods, each with a directory that its containers share.
type yard struct {
	t    *testing.T
	api  *apifake.Server
	dirs map[string]string
	// urls are the addresses of the pods' watchers.
	urls map[string]string
}

func newYard(t *testing.T, annotations map[string]string) *yard {
	t.Helper()
	y := &yard{t: t, api: apifake.New(t), dirs: map[string]string{}, urls: map[string]string{}}
	owner := apifake.Owner(2)
	owner.SetAnnotations(annotations)
	y.api.Put(owner)
	y.api.Put(apifake.ReplicaSet("rs", "1"))
	y.add("a")
	y.add("b")
	return y
}

// add makes a pod.
func (y *yard) add(name string) {
	y.t.Helper()
	y.api.Put(apifake.PodOf(name, "rs"))
	y.dirs[name] = y.t.TempDir()
}

// watch starts a watcher in a pod. The returned function ends it, as a restart of its container does.
func (y *yard) watch(pod string, partitions bool, hooks Hooks) (end func()) {
	y.t.Helper()
	ctx, cancel := context.WithCancel(y.t.Context())
	done := make(chan error, 1)
	o := y.options(pod, partitions)
	go func() { done <- Watch(ctx, o, hooks) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			y.t.Error(err)
		}
	}
}

// options are those of a watcher in a pod.
func (y *yard) options(pod string, partitions bool) Options {
	y.t.Helper()
	s := y.api.Store(y.t, clock.RealClock{})
	free, err := new(net.ListenConfig).Listen(y.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		y.t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		y.t.Fatal(err)
	}
	y.urls[pod] = "http://" + address
	return Options{
		Dir: y.dirs[pod], HTTPAddress: address, Partitions: partitions,
		Allocator: allocator.Options{Store: s, Pod: pod, Namespace: apifake.Namespace, PodUID: apifake.UIDOf(pod), Log: logr.Discard()},
	}
}

// post posts to a pod's watcher until it accepts that.
func (y *yard) post(pod, what string) {
	y.t.Helper()
	y.until("an answer to "+what, func() bool {
		r, err := http.NewRequestWithContext(y.t.Context(), http.MethodPost, y.urls[pod]+what, http.NoBody)
		if err != nil {
			y.t.Fatal(err)
		}
		r.Header.Set(serve.SecretHeader, secretIn(y.t, y.dirs[pod]))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false // it has not begun to listen
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusNoContent
	})
}

// until waits for a change.
func (y *yard) until(what string, is func() bool) {
	y.t.Helper()
	late := time.After(time.Minute)
	for !is() {
		select {
		case <-time.After(identity.PollInterval):
		case <-late:
			y.t.Fatalf("no %s; a shows %+v, b %+v", what, y.shows("a"), y.shows("b"))
		}
	}
}

// shows is what a pod's files say.
func (y *yard) shows(pod string) identity.Identity {
	id, err := identity.Read(y.dirs[pod])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		y.t.Error(err)
	}
	return id
}

func (y *yard) own(a, b int) func() bool {
	return func() bool {
		return y.shows("a").Partitions.Owned().Len() == a && y.shows("b").Partitions.Owned().Len() == b
	}
}

// A pause moves all partitions to others, and outlives the container.
func TestAPodPausesUntilItResumes(t *testing.T) {
	y := newYard(t, map[string]string{assignment.PartitionCountKey: "8"})
	stops, err := hook.Parse("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	hooks := Hooks{Drain: stops, DrainTimeout: time.Minute}
	end := y.watch("a", true, hooks)
	defer y.watch("b", true, hooks)()
	y.until("division", y.own(4, 4))
	y.post("a", "/v1/pause")
	y.until("pause", y.own(0, 8))
	end()
	end = y.watch("a", true, hooks)
	defer func() { end() }()
	for over := time.After(3 * time.Second); over != nil; { // it would take partitions after a second
		select {
		case <-time.After(identity.PollInterval):
		case <-over:
			over = nil
		}
		if !y.own(0, 8)() {
			t.Fatalf("after a restart a shows %+v", y.shows("a"))
		}
	}
	y.post("a", "/v1/resume")
	y.until("division", y.own(4, 4))
}

func TestASlotIsSaidToBeGivenIfThereWasOneAndOnce(t *testing.T) {
	for _, holds := range []bool{true, false} {
		y := newYard(t, nil)
		o := y.options("a", false)
		var said []string
		o.Allocator.Log = funcr.New(func(_, args string) {
			if strings.Contains(args, "slot") {
				said = append(said, args)
			}
		}, funcr.Options{})
		a := anAgent(t, o)
		a.work = noWork{}
		alloc, err := a.newAllocator(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if holds {
			if _, err := alloc.Claim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.release(t.Context(), alloc, false)
		if want := map[bool]int{true: 1}[holds]; len(said) != want {
			t.Errorf("with a slot: %t; the log says %q", holds, said)
		}
	}
}

// Each would take the receipt of the other for damage, and both would act.
func TestASecondProcessOfThePodIsRefused(t *testing.T) {
	y := newYard(t, nil)
	pod := "a-" + strings.ToLower(rand.Text())
	y.add(pod)
	first := y.options(pod, false)
	first.Alone = true
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, first, Hooks{}) }()
	defer func() {
		if end(); <-ended != nil {
			t.Error("the first one has failed")
		}
	}()
	y.until("id", func() bool { return y.shows(pod).Assigned() })
	before, version := y.shows(pod), y.api.Get(apifake.Pods, pod).GetResourceVersion()

	second := y.options(pod, false)
	second.Alone = true
	for _, uid := range []types.UID{second.Allocator.PodUID, ""} { // it may have to ask for it
		second.Dir, second.Allocator.PodUID = t.TempDir(), uid
		if _, err := Init(t.Context(), second); err == nil || !strings.Contains(err.Error(), "another process of pod "+pod) {
			t.Errorf("init ended with %v", err)
		}
		if err := Watch(t.Context(), second, Hooks{}); err == nil || !strings.Contains(err.Error(), "another process of pod "+pod) {
			t.Errorf("watch ended with %v", err)
		}
		if id, err := identity.Read(second.Dir); err == nil && id.Assigned() {
			t.Errorf("it shows %s", id)
		}
	}
	if now := y.shows(pod); now != before || y.api.Get(apifake.Pods, pod).GetResourceVersion() != version {
		t.Errorf("the first one showed %+v and shows %+v", before, now)
	}
}
