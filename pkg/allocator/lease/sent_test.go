package lease_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// lateOnce is an API server that answers the first write late, and refuses all others.
type lateOnce struct {
	*server.Standalone

	late   time.Duration
	writes int
}

// RoundTrip implements http.RoundTripper.
func (l *lateOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return l.Standalone.RoundTrip(req)
	}
	if l.writes++; l.writes > 1 {
		return server.Refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "not now").Response(req), nil
	}
	answer, err := l.Standalone.RoundTrip(req)
	<-time.After(l.late)
	return answer, err
}

// An observer counts from when the API server got the write. So the holder counts from when it sent it, however long the answer takes.
func TestTheTimeOfALeaseBeginsWhenTheWriteIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after, late = 30 * time.Second, 10 * time.Second
		began := time.Now()
		api := &lateOnce{Standalone: server.NewStandalone(), late: late}
		st, err := store.New(&rest.Config{Host: "http://server.invalid", QPS: -1, Transport: api}, machine{booted: began})
		if err != nil {
			t.Fatal(err)
		}
		fenced := make(chan time.Duration, 9)
		g := secured(t, lease.Options{Store: st, Pace: pace.New(func() float64 { return 0 }), After: after, Fenced: func(by time.Duration) { fenced <- by }})
		by := <-fenced
		if took := time.Since(began); took != after || by != after || !g.Over() {
			t.Errorf("the time is over after %s, and the work is to stop by %s; want %s after the write was sent", took, by, after)
		}
		g.Forget()
		g.Wait()
	})
}
