package allocation

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
)

// fault is what happens to a request that match picks.
type fault struct {
	match func(*http.Request) bool
	times atomic.Int64 // how often it still happens
	do    func(next http.RoundTripper, r *http.Request) (*http.Response, error)
}

func (f *fault) options(o *idcontext.Options) {
	intercept(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if f.match(r) && f.times.Add(-1) >= 0 {
			return f.do(next, r)
		}
		return next.RoundTrip(r)
	})(o)
}

// The faults.
var errLost = errors.New("the connection broke")

func requestLost(_ http.RoundTripper, _ *http.Request) (*http.Response, error) { return nil, errLost }

func responseLost(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(errLost, resp.Body.Close())
}

func overloaded(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

var _ = Describe("a request without an answer", func() {
	var w *workload
	BeforeEach(func(ctx SpecContext) { w = newWorkload(ctx, store.Deployment) })

	DescribeTable("is read again before anything else", func(ctx SpecContext, what string, do func(http.RoundTripper, *http.Request) (*http.Response, error)) {
		pod := w.idle(ctx, 1)[0].Name
		path := map[string]string{"owner": "/deployments/worker", "receipt": "/pods/" + pod}[what]
		f := &fault{match: request(http.MethodPatch, path), do: do}
		f.times.Store(2)
		i := w.instance(ctx, pod, f.options)
		Expect(i.Wait(ctx)).To(HaveField("ID", 0))
		Expect(f.times.Load()).To(BeNumerically("<", 2), "the fault did not happen")
		Expect(w.assignment(ctx)).To(Equal(assignment.Slots{0: pod}))
		By("giving the slot back through the same faults")
		f.times.Store(2)
		Expect(i.Close(ctx)).To(Succeed())
		Expect(w.assignment(ctx)).To(BeEmpty())
		Expect(w.pod(ctx, pod).Labels).NotTo(HaveKey(assignment.InstanceIDLabel))
	},
		Entry("a write to the owner that was not carried out", "owner", requestLost),
		Entry("a write to the owner that was carried out", "owner", responseLost),
		Entry("a write to the owner that the server failed on", "owner", overloaded),
		Entry("a receipt that was not written", "receipt", requestLost),
		Entry("a receipt that was written", "receipt", responseLost),
	)

	It("does not hide that the pod is gone", func(ctx SpecContext) {
		pod := w.idle(ctx, 1)[0].Name
		f := &fault{match: request(http.MethodGet, "/pods/"+pod), do: overloaded}
		i := w.instance(ctx, pod, f.options)
		Expect(i.Wait(ctx)).To(HaveField("ID", 0))
		f.times.Store(3)
		now := int64(0)
		Expect(env.Client.CoreV1().Pods(w.Name).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		Eventually(i.Current).WithContext(ctx).Should(HaveField("State", identity.StateLost))
		_, err := i.Wait(ctx)
		Expect(err).To(MatchError(allocator.ErrPodGone))
		Expect(f.times.Load()).To(BeNumerically("<=", 0), "the faults did not happen")
	})
})
