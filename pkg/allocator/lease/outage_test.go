package lease_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sort"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/test/apifake"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// machine is a machine that is never suspended.
type machine struct {
	clock.RealClock

	booted time.Time
}

func (m machine) BootTime() time.Duration { return time.Since(m.booted) }

func (m machine) BootWait(until time.Duration, done <-chan struct{}) {
	select {
	case <-time.After(until - m.BootTime()):
	case <-done:
	}
}

// secured is the Guard of a pod that has the Lease of slot 0.
func secured(t *testing.T, o lease.Options) *lease.Guard {
	t.Helper()
	o.Pod, o.News, o.Contact = "worker-0", func() {}, func(event.Contact) {}
	g := lease.New(o)
	ref, _ := kinds.NewRef(apifake.Apps, apifake.Deployment, apifake.Namespace, apifake.Worker)
	g.Begin(t.Context(), ref, "uid")
	if _, left, err := g.Secure(t.Context(), receipt.Share{}); err != nil || left > 0 {
		t.Fatalf("no Lease: %s, %v", left, err)
	}
	return g
}

// outage is one way in which an API server is away.
type outage struct {
	name string
	// lasts is what strict mode lasts through, by docs/outages.md: an outage of that length, or one of any length with answers that take that long.
	lasts func(fenceAfter, stop time.Duration) time.Duration
	slow  bool
	begin func(s *site, takes time.Duration)
	end   func(*site)
}

// site is an API server at the other end of a network.
type site struct {
	*apifake.Network

	refusesToken atomic.Bool
	errs         atomic.Bool  // although it does what it is asked to
	answersAfter atomic.Int64 // nanoseconds
}

func (s *site) serve(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refusesToken.Load() {
			apifake.Refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
			return
		}
		if s.errs.Load() {
			api.ServeHTTP(httptest.NewRecorder(), r)
			apifake.Refuse(w, http.StatusInternalServerError, "InternalError", "etcdserver: leader changed")
			return
		}
		select {
		case <-time.After(time.Duration(s.answersAfter.Load())):
			api.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// outages are those of docs/outages.md.
func outages() []outage {
	away := func(fenceAfter, stop time.Duration) time.Duration {
		return fenceAfter - stop - fenceAfter/12 - min(max(fenceAfter/60, 200*time.Millisecond), 10*time.Second)
	}
	return []outage{
		{
			name: "refused", lasts: away,
			begin: func(s *site, _ time.Duration) { s.Refuses.Store(true); s.Break() },
			end:   func(s *site) { s.Refuses.Store(false) },
		}, {
			name: "errors", lasts: away,
			begin: func(s *site, _ time.Duration) { s.errs.Store(true) },
			end:   func(s *site) { s.errs.Store(false) },
		}, {
			name: "silent", lasts: func(fenceAfter, stop time.Duration) time.Duration {
				return away(fenceAfter, stop) - min(max(fenceAfter/30, 500*time.Millisecond), 5*time.Second)
			},
			begin: func(s *site, _ time.Duration) { s.Silent.Store(true); s.Cut() },
			end:   func(s *site) { s.Silent.Store(false) },
		}, {
			name: "half-open", lasts: func(fenceAfter, _ time.Duration) time.Duration { return 9 * fenceAfter },
			begin: func(s *site, _ time.Duration) { s.Cut() },
			end:   func(*site) {},
		}, {
			name: "slow", slow: true, lasts: func(fenceAfter, stop time.Duration) time.Duration {
				return min((fenceAfter-stop)/2, request.Timeout) - grain
			},
			begin: func(s *site, takes time.Duration) { s.answersAfter.Store(int64(takes)) },
			end:   func(s *site) { s.answersAfter.Store(0) },
		}, {
			name: "unauthorized", lasts: away,
			begin: func(s *site, _ time.Duration) { s.refusesToken.Store(true) },
			end:   func(s *site) { s.refusesToken.Store(false) },
		},
	}
}

// survives plays an outage of this length, or with answers that take as long. It begins this long after a time of peace. The result is whether the pod
// still has its Lease a while after it. It runs in the time of its bubble.
func survives(t *testing.T, o outage, fenceAfter, stop, after, takes time.Duration) bool {
	t.Helper()
	length := takes
	if o.slow {
		length = 5 * fenceAfter
	}
	s := &site{}
	api := server.NewStandalone()
	s.Network = apifake.NewNetwork(t, s.serve(&httputil.ReverseProxy{Transport: api, Rewrite: func(*httputil.ProxyRequest) {}}))
	st, err := store.New(connect.Alive(s.Config(), fenceAfter), machine{booted: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(uint64(after), uint64(takes))) //nolint:gosec // a seed makes a run again
	g := secured(t, lease.Options{Store: st, Pace: pace.New(random.Float64), After: fenceAfter, Lead: stop, Fenced: func(time.Duration) {}})
	<-time.After(fenceAfter + after)
	o.begin(s, takes)
	<-time.After(length)
	o.end(s)
	<-time.After(fenceAfter)
	over := g.Over()
	g.Forget()
	g.Wait()
	return !over
}

// grain is how exactly the longest outage is found.
const grain = 100 * time.Millisecond

// each reports whether the pod keeps its Lease through the outage at whichever moment between two renewals it begins.
func each(t *testing.T, o outage, fenceAfter, stop, takes time.Duration) (kept bool) {
	t.Helper()
	const moments = 8
	for i := range moments {
		synctest.Test(t, func(t *testing.T) {
			kept = survives(t, o, fenceAfter, stop, time.Duration(i)*fenceAfter/12/moments, takes)
		})
		if !kept {
			return false
		}
	}
	return true
}

// With -v it prints what the formulas say beside what is measured, in virtual time.
func TestStrictModeLastsThroughAnOutage(t *testing.T) {
	for _, tc := range []struct{ fenceAfter, stop time.Duration }{
		{3 * time.Second, time.Second}, {30 * time.Second, 10 * time.Second}, {30 * time.Second, 0}, {5 * time.Minute, 10 * time.Second},
	} {
		for _, o := range outages() {
			t.Run(fmt.Sprintf("%s-%s-%s", o.name, tc.fenceAfter, tc.stop), func(t *testing.T) {
				says := o.lasts(tc.fenceAfter, tc.stop)
				if !each(t, o, tc.fenceAfter, tc.stop, says) {
					t.Errorf("it does not last through %s", says)
				}
				if testing.Verbose() {
					n := sort.Search(int((2*tc.fenceAfter)/grain), func(n int) bool { return !each(t, o, tc.fenceAfter, tc.stop, time.Duration(n)*grain) })
					t.Logf("fence-after %s, time to stop %s, %s: the formula says %s, measured %s (searched up to twice fence-after)", tc.fenceAfter, tc.stop, o.name, says, time.Duration(n-1)*grain)
				}
			})
		}
	}
}

// No outage can last as long as the work may go on.
func TestALeaseEndsInTime(t *testing.T) {
	for _, o := range outages() {
		if o.slow || o.name == "half-open" {
			continue // they end only if they are too slow
		}
		synctest.Test(t, func(t *testing.T) {
			if survives(t, o, 30*time.Second, 10*time.Second, 0, 20*time.Second) {
				t.Errorf("%s for 20s: the work continues", o.name)
			}
		})
	}
}
