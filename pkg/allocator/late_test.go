package allocator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/apifake"
)

// wire answers requests without a socket, so that it can be used in a bubble.
type wire func(r *http.Request) ([]byte, error)

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := w(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, nil
}

// refusing answers each request with this code.
type refusing int

// RoundTrip implements http.RoundTripper.
func (code refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(code), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A mesh's proxy that starts later, or a NetworkPolicy. The pod cannot tell of it while it lasts.
func TestAnAPIServerThatDidNotAnswerAtTheStartIsToldOfWhenItDoes(t *testing.T) {
	for away, told := range map[time.Duration]bool{time.Second: false, 3 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			pod := apifake.Pod("a")
			pod.SetOwnerReferences(apifake.ControlledBy("StatefulSet", "s", "s"))
			begin := time.Now()
			var events []string
			s, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: wire(func(r *http.Request) ([]byte, error) {
				switch {
				case time.Since(begin) < away:
					return nil, errors.New("i/o timeout")
				case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
					body, err := io.ReadAll(r.Body)
					events = append(events, string(body))
					return body, err
				case strings.HasSuffix(r.URL.Path, "/pods/a"):
					return json.Marshal(pod)
				}
				return nil, errors.New("not now")
			})}, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := allocator.New(t.Context(), allocator.Options{Store: s, Pod: "a", PodUID: apifake.UIDOf("a"), Namespace: apifake.Namespace, Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := a.Run(ctx); !errors.Is(err, allocator.ErrNoSlot) {
				t.Error(err)
			}
			if all := strings.Join(events, " "); (all != "") != told || told && (!strings.Contains(all, "WaitingForSlot") || !strings.Contains(all, "did not serve this pod for 3m") || !strings.Contains(all, "i/o timeout")) {
				t.Errorf("away for %s: %s", away, all)
			}
		})
	}
}

// A watch notices a broken network much later than a request does.
func TestTheAPIServerIsBackWhenItAnswers(t *testing.T) {
	b := newBench(t, 1)
	var away, back, failed atomic.Int32
	const enough = 4
	b.works("p0", func(o *allocator.Options) {
		o.Log = funcr.New(func(_, line string) {
			if strings.Contains(line, "a request failed") {
				failed.Add(1)
			}
		}, funcr.Options{Verbosity: 1})
		o.Observer = observer(func(e event.Event) {
			switch e.(type) {
			case event.Away:
				away.Add(1)
			case event.Back:
				if back.Add(1); failed.Load() < enough {
					t.Errorf("it is back after %d of %d requests without an answer", failed.Load(), enough)
				}
			}
		})
	})
	b.scale(2)
	b.until("the new count, which the watch brings", func(now map[string]identity.Identity) bool { return now["p0"].Count == 2 })
	b.api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && failed.Load() < enough { // client-go repeats others itself
			panic(http.ErrAbortHandler)
		}
		return false
	})
	b.scale(0)
	if !b.api.Await(t.Context(), func() bool { return back.Load() > 0 && !b.says("p0", receipt.Locks) }) || away.Load() != 1 {
		t.Errorf("away %d times, back %d times", away.Load(), back.Load())
	}
}

// The service account is deleted and made again. The container restarts, with a token of the former account.
func TestAPodWhoseCredentialsAreRefusedHasNoContactAndKeepsSayingSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.New(&rest.Config{Host: "http://api.invalid", Transport: refusing(http.StatusUnauthorized)}, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		away, stale := false, false
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		_, err = allocator.New(ctx, allocator.Options{
			Store: s, Pod: "a", Namespace: apifake.Namespace, Stale: func(now bool) { stale = now },
			Log:      funcr.New(func(_, line string) { says = append(says, line) }, funcr.Options{}),
			Observer: observer(func(e event.Event) { _, is := e.(event.Away); away = away || is }),
		})
		if !stale || !away {
			t.Errorf("stale %t, contact lost %t: an answer that refuses the credentials is no contact", stale, away)
		}
		if len(says) != 3 {
			t.Errorf("in two and a half minutes it says\n%s\nwant a line each minute", strings.Join(says, "\n"))
		}
		for _, text := range append(says, err.Error()) {
			if !strings.Contains(text, "delete the pod") {
				t.Errorf("it does not say what to do: %s", text)
			}
		}
	})
}
