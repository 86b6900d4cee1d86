package allocation

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

// verify runs the command on the owner as the administrator.
func (w *workload) verify(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return w.idalloc(ctx, "", append([]string{"verify", w.ref.String(), "-n", w.Name}, args...)...)
}

// verified expects that nothing is wrong, or not for long.
func (w *workload) verified(ctx context.Context) {
	GinkgoHelper()
	got := w.verify(ctx, "--wait=1m")
	Expect(got.Code).To(BeZero(), "%s%s", got.Stdout, got.Stderr)
}

// verdict is verify's output for machines.
type verdict struct {
	Owner    string `json:"owner"`
	OK       bool   `json:"ok"`
	Findings []struct {
		Kind   string `json:"kind"`
		ID     *int   `json:"id"`
		Pod    string `json:"pod"`
		Detail string `json:"detail"`
	} `json:"findings"`
	Warnings []string `json:"warnings"`
}

// verdict runs verify and expects this exit code.
func (w *workload) verdict(ctx context.Context, code int, args ...string) verdict {
	GinkgoHelper()
	got := w.verify(ctx, append([]string{"-o", "json"}, args...)...)
	Expect(got.Code).To(Equal(code), "%s%s", got.Stdout, got.Stderr)
	var v verdict
	Expect(json.Unmarshal([]byte(got.Stdout), &v)).To(Succeed(), got.Stdout)
	Expect(v.OK).To(Equal(code == 0))
	return v
}

var _ = Describe("verify", func() {
	// Nothing runs in the pods: init claims once for each, and no process repairs what the spec breaks.
	var w *workload
	BeforeEach(func(ctx SpecContext) {
		w = newWorkload(ctx, kinds.Deployment)
		for _, pod := range w.idle(ctx, 2) {
			Expect(w.idalloc(ctx, pod.Name, "init", "--dir", GinkgoT().TempDir())).To(HaveField("Code", 0))
		}
	})

	It("finds nothing, and warns of a rolling update that would wait for ever", func(ctx SpecContext) {
		v := w.verdict(ctx, 0)
		Expect(v.Owner).To(Equal("Deployment/worker"))
		Expect(v.Findings).To(BeEmpty())
		Expect(v.Warnings).To(ConsistOf(And(ContainSubstring("maxUnavailable is 0"), ContainSubstring("maxSurge: 0"), ContainSubstring("--drain-exec"))))
		got := w.verify(ctx)
		Expect(got.Stdout).To(And(ContainSubstring("warning: a rolling update"), HaveSuffix("Deployment/worker: ok: live pods hold 2 of 2 ids, 0 wait\n")))

		By("using a strategy that ends old pods first")
		w.patchOwner(ctx, types.MergePatchType, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`)
		Expect(w.verdict(ctx, 0, "--fail-on-warnings").Warnings).To(BeEmpty())
	})
})
