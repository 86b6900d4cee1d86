package allocation

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// worker is one pod's function, which idalloc.Run calls in this process. When its context ends it goes on working until
// it is told to stop. It logs under which id it works, for the overlap check at the end of the spec.
type worker struct {
	pod    string
	log    *overlap.Writer
	calls  chan identity.Identity
	causes chan error
	stop   chan error    // what calls return whose context ended, one for each
	over   chan struct{} // closed when all may return
	ended  chan error    // what Run returned
}

// work starts a worker for a pod.
func (w *workload) work(ctx context.Context, pod string, change ...change) *worker {
	GinkgoHelper()
	o := w.options(ctx, pod)
	o.KeepOnCountChange = true
	for _, c := range change {
		c(&o)
	}
	p := &worker{
		pod: pod, log: w.probeLog(pod, ""), calls: make(chan identity.Identity, 64), causes: make(chan error, 64),
		stop: make(chan error, 64), over: make(chan struct{}), ended: make(chan error, 1),
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(p.ended)
		err := idalloc.Run(running, o, p.do)
		GinkgoLogr.Info("Run returned", "pod", pod, "error", fmt.Sprint(err))
		p.ended <- err
	}()
	DeferCleanup(func() {
		cancel()
		close(p.over)
		for range p.ended { // until it is closed
		}
		Expect(p.log.Close()).To(Succeed())
	})
	return p
}

// do is the function.
func (p *worker) do(ctx context.Context, id identity.Identity) error {
	defer GinkgoRecover()
	p.calls <- id
	returned, result := make(chan struct{}), error(nil)
	go func() {
		defer close(returned)
		result = p.untilStopped(ctx)
	}()
	works := func() (int, int, int64) { return id.ID, id.Count, id.Token }
	Expect(errors.Join(p.log.Until(returned, works), p.log.Sample(works), p.log.Sample(overlap.Nothing))).To(Succeed())
	return result
}

func (p *worker) untilStopped(ctx context.Context) error {
	<-ctx.Done()
	p.causes <- context.Cause(ctx)
	select {
	case err := <-p.stop:
		return err
	case <-p.over:
		return nil
	}
}

// begins waits for the next call.
func (p *worker) begins(ctx context.Context) identity.Identity {
	GinkgoHelper()
	var id identity.Identity
	Eventually(p.calls).WithContext(ctx).Should(Receive(&id), "%s is not called", p.pod)
	return id
}

// told waits until the function's context ended.
func (p *worker) told(ctx context.Context) error {
	GinkgoHelper()
	var cause error
	Eventually(p.causes).WithContext(ctx).Should(Receive(&cause), "%s is not told to stop", p.pod)
	return cause
}
