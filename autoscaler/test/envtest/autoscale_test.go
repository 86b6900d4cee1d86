package envtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/autoscaler/internal/election"
	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

var _ = Describe("The autoscaler", func() {
	It("brings pods before their partitions, and takes partitions before their pods", func(ctx SpecContext) {
		w := deploy(ctx)
		run(ctx, w.autoscaler())
		w.loads(250)
		w.settles(ctx, 3)
		scaled := w.moment(ctx)
		Expect(scaled.Scaler).To(Equal(workload.FieldManager))
		Expect(scaled.Scaled).NotTo(BeZero(), "the object says when it was scaled at the latest")
		Eventually(func() []int { // each has 250/12 units/s, so a pod works off four
			row := w.moment(ctx).Row
			return []int{row[0].Len(), row[1].Len(), row[2].Len()}
		}).WithContext(ctx).Should(Equal([]int{4, 4, 4}))
		w.loads(60)
		w.settles(ctx, 1)
		events, err := env.Client.CoreV1().Events(w.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		Expect(err).NotTo(HaveOccurred())
		said := make([]string, 0, len(events.Items))
		for i := range events.Items {
			said = append(said, events.Items[i].Reason)
		}
		Expect(said).To(ContainElements("AutoscalerScaled", "PartitionsMoved"))
	})

	It("says what is in the way, and ends with the workload", func(ctx SpecContext) {
		w := deploy(ctx)
		_, err := env.Client.AppsV1().Deployments(w.Name).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+assignment.PartitionStrategyKey+`":"sticky"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		var mu sync.Mutex
		var why string
		r := run(ctx, w.autoscaler(func(l *loop.Loop) {
			l.Observe = func(r loop.Report) {
				mu.Lock()
				defer mu.Unlock()
				why = r.Decision.Why
			}
		}))
		Eventually(func() string {
			mu.Lock()
			defer mu.Unlock()
			return why
		}).WithContext(ctx).Should(ContainSubstring("kubectl annotate -n " + w.Name + " Deployment/worker"))
		Expect(env.Client.AppsV1().Deployments(w.Name).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(r.ended).WithContext(ctx).Should(BeClosed())
		Expect(r.err).To(MatchError(store.ErrGone))
	})

	It("names the permission that is missing", func(ctx SpecContext) {
		w := deploy(ctx)
		role, err := env.Client.RbacV1().Roles(w.Name).Get(ctx, example.AutoscalerAccount, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "deployments/scale") })
		_, err = env.Client.RbacV1().Roles(w.Name).Update(ctx, role, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.loads(250)
		Expect(refusal(ctx, w)).To(MatchError(ContainSubstring(`add verb "patch" on resource "deployments/scale"`)))
	})

	It("is kept from scaling by the admission policy if its account has the mark of pods", func(ctx SpecContext) {
		w := deploy(ctx)
		role, err := env.Client.RbacV1().Roles(w.Name).Get(ctx, example.AutoscalerAccount, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for i := range role.Rules {
			if slices.Contains(role.Rules[i].APIGroups, "idalloc.dev") {
				role.Rules[i].Verbs = []string{"allocate"}
			}
		}
		_, err = env.Client.RbacV1().Roles(w.Name).Update(ctx, role, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.loads(250)
		Expect(refusal(ctx, w)).To(MatchError(ContainSubstring("an account that is marked for idalloc may only update workloads and pods themselves")))
	})
})

// refusal runs an autoscaler until a write of it is refused.
func refusal(ctx SpecContext, w *scaled) error {
	GinkgoHelper()
	refusals := make(chan error, 1)
	run(ctx, w.autoscaler(func(l *loop.Loop) {
		l.Observe = func(r loop.Report) {
			if forbidden := (*store.ForbiddenError)(nil); errors.As(r.Err, &forbidden) {
				select {
				case refusals <- r.Err:
				default:
				}
			}
		}
	}))
	var refused error
	Eventually(refusals).WithContext(ctx).Should(Receive(&refused))
	return refused
}

var _ = Describe("The example", func() {
	It("is accepted by the API server", func(ctx SpecContext) {
		ns, err := env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		_, err = env.Client.AppsV1().Deployments(ns.Name).Create(ctx, specs.Manifest[*appsv1.Deployment]("autoscaler/config/base/deployment.yaml"), strict)
		Expect(err).NotTo(HaveOccurred())
		_, err = env.Client.AutoscalingV2().HorizontalPodAutoscalers(ns.Name).Create(ctx,
			specs.Manifest[*autoscalingv2.HorizontalPodAutoscaler]("autoscaler/config/hpa.yaml"), strict)
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("Leader election", func() {
	It("gives the lease back only after the work has stopped", func(ctx SpecContext) {
		w := prepare(ctx)
		candidate := func(who string) election.Candidate {
			return election.Candidate{Config: w.config, Namespace: w.Name, Name: lease, Identity: who, Duration: 3 * time.Second, Log: GinkgoLogr}
		}
		var mu sync.Mutex
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		said := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(order, ", ")
		}
		started, release := make(chan struct{}), make(chan struct{})
		first, stopFirst := context.WithCancel(ctx)
		second, stopSecond := context.WithCancel(ctx)
		ends := make(chan error, 2)
		go func() {
			ends <- candidate("a").Run(first, func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				<-release
				note("a has stopped")
				return nil
			})
		}()
		Eventually(started).WithContext(ctx).Should(BeClosed())
		go func() {
			ends <- candidate("b").Run(second, func(ctx context.Context) error {
				note("b leads")
				<-ctx.Done()
				return nil
			})
		}()
		stopFirst()
		held := func() string {
			found, err := env.Client.CoordinationV1().Leases(w.Name).Get(ctx, lease, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return *found.Spec.HolderIdentity
		}
		Consistently(held, 4*time.Second).Should(Equal("a"), "it renews the lease until its work has stopped")
		close(release)
		Eventually(said).WithContext(ctx).Should(Equal("a has stopped, b leads"))
		stopSecond()
		Eventually(ends).WithContext(ctx).Should(Receive(BeNil()))
		Eventually(ends).WithContext(ctx).Should(Receive(BeNil()))
	})

})
