package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

type object = map[string]any

// apiServer answers each request with a status code and an object. Code 0 is a connection that breaks. It opens no socket, so that it can be
// used in a bubble.
type apiServer func() (code int, body object)

// RoundTrip implements http.RoundTripper.
func (s apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := s()
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r,
	}, nil
}

// asked returns the options of worker-0 with this API server.
func asked(t *testing.T, s apiServer) allocator.Options {
	t.Helper()
	st, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: s}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return allocator.Options{Store: st, Pod: podName, Namespace: "shop", PodUID: podUID, Log: logr.Discard()}
}

func away() (int, object) { return 0, nil }

func refused(code int, reason string) (int, object) {
	return code, object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code,
		"details": object{"name": podName, "kind": "pods"},
	}
}

// pod returns worker-0 with this specification and status.
func pod(deleted bool, spec, status object) object {
	meta := object{"name": podName, "namespace": "shop", "uid": podUID}
	if deleted {
		meta["deletionTimestamp"] = "2026-11-23T00:00:00Z"
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
}

func containers(states ...string) object {
	out := make([]any, 0, len(states))
	for _, state := range states {
		out = append(out, object{"state": object{state: object{}}})
	}
	return object{"containerStatuses": out}
}

// A sidecar that takes a program for ended, which only restarts or has not started, gives its id away.
func TestThePodHasEndedOnlyIfAllItsMainContainersHave(t *testing.T) {
	two := []any{object{"name": "a"}, object{"name": "b"}}
	native := object{"containers": two, "initContainers": []any{object{"name": "init"}, object{"name": "idalloc", "restartPolicy": "Always"}}}
	plain := object{"containers": two, "initContainers": []any{object{"name": "init"}}}
	for name, c := range map[string]struct {
		pod  object
		want bool
	}{
		"deleted, all ended":          {pod(true, native, containers("terminated", "terminated")), true},
		"not deleted, all ended":      {pod(false, native, containers("terminated", "terminated")), false},
		"one runs":                    {pod(true, native, containers("terminated", "running")), false},
		"one restarts":                {pod(true, native, containers("waiting", "terminated")), false},
		"one without a status":        {pod(true, native, containers("terminated")), false},
		"no native sidecar":           {pod(true, plain, containers("terminated", "terminated")), false},
		"nothing but main containers": {pod(true, object{"containers": two}, containers("terminated", "terminated")), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := asked(t, func() (int, object) { return 200, c.pod })
			if got, err := Ended(t.Context(), o.Store, o.Namespace, o.Pod); err != nil || got != c.want {
				t.Errorf("ended is %t, %v; want %t", got, err, c.want)
			}
		})
	}
	o := asked(t, func() (int, object) { return refused(403, "Forbidden") })
	if got, err := Ended(t.Context(), o.Store, o.Namespace, o.Pod); err == nil || got {
		t.Errorf("ended is %t, %v, and that was not said", got, err)
	}
}

// Without it, each process that reaches the loopback interface could say that the work has stopped.
func TestTheProgramFindsTheSecretThatItsPOSTsNeed(t *testing.T) {
	drain, err := hook.Parse("true")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		hooks      Hooks
		partitions bool
		path       string
	}{
		"it says that it has stopped": {Hooks{DrainHTTP: true}, false, "/v1/drained"},
		"it pauses":                   {Hooks{Drain: drain}, true, "/v1/pause"},
		"nothing can be said":         {Hooks{Drain: drain}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := beginning(t, t.TempDir())
			b.o.Partitions = c.partitions
			server := serve.NewServer(":0", b.hub, nil)
			must(t, b.hears(server, c.hooks))
			if c.path == "" {
				if _, err := os.Stat(filepath.Join(b.dir.Path(), publish.SecretName)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("there is a secret for nothing: %v", err)
				}
				return
			}
			b.publish(held())
			b.publish(held().Without(identity.StateDraining))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, http.NoBody)
			r.RemoteAddr = "127.0.0.1:5"
			r.Header.Set(serve.SecretHeader, secretIn(t, b.dir.Path()))
			w := httptest.NewRecorder()
			server.Handler().ServeHTTP(w, r)
			if w.Code != http.StatusNoContent {
				t.Errorf("it is answered %d: %s", w.Code, w.Body)
			}
		})
	}
}

// A server that does not answer is no workload without a free slot.
func TestTheTimeoutEndsAWaitForTheAPIServer(t *testing.T) {
	for name, wait := range map[string]func(context.Context, Options) error{
		"init":  func(ctx context.Context, o Options) error { _, err := Init(ctx, o); return err },
		"watch": func(ctx context.Context, o Options) error { return Watch(ctx, o, Hooks{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Dir: t.TempDir(), Timeout: time.Minute, Allocator: asked(t, away)}
				begin := time.Now()
				err := wait(t.Context(), o)
				if !errors.Is(err, ErrTimeout) || errors.Is(err, allocator.ErrNoSlot) || time.Since(begin) != time.Minute {
					t.Errorf("it ended after %s with %v", time.Since(begin), err)
				}
				o.Timeout = 0
				begin = time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Hour, func() { cancel(errHook) })
				if err := wait(ctx, o); errors.Is(err, ErrTimeout) || time.Since(begin) != time.Hour {
					t.Errorf("without a timeout it ended after %s with %v", time.Since(begin), err)
				}
			})
		})
	}
}

func TestTheTimeoutIsForTheFirstIDOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := anAgent(t, Options{Timeout: time.Minute, Allocator: asked(t, away)})
		a.work = noWork{}
		a.publish(held())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(errHook) })
		if err := a.claim(ctx, nil); !errors.Is(err, errHook) || errors.Is(err, allocator.ErrNoSlot) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestWatchEndsWithoutAnErrorWhenItIsToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, Watch(ctx, Options{Dir: t.TempDir(), Allocator: asked(t, away)}, Hooks{}))
	})
}

// The kubelet of a node that was away may not know yet that the pod is gone, and another pod may have its id.
func TestAPodThatIsGoneShowsNoID(t *testing.T) {
	for name, answer := range map[string]apiServer{
		"no pod": func() (int, object) { return refused(404, "NotFound") },
		"another of its name": func() (int, object) {
			p := pod(false, nil, nil)
			p["metadata"].(object)["uid"] = "uid-2" //nolint:errcheck // made above
			return 200, p
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, _ := beginning(t, dir)
			b.publish(held())
			_, err := Init(t.Context(), Options{Dir: dir, Allocator: asked(t, answer)})
			if !errors.Is(err, allocator.ErrPodGone) {
				t.Errorf("it ended with %v", err)
			}
			if id, err := identity.Read(dir); err != nil || id.State != identity.StateLost || hasID(t, dir) {
				t.Errorf("the files say %s, %v", id, err)
			}
		})
	}
}
