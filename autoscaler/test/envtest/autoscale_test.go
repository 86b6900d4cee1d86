package envtest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/autoscaler/internal/election"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

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
		order := make(chan string, 2)
		started, release := make(chan struct{}), make(chan struct{})
		first, stopFirst := context.WithCancel(ctx)
		second, stopSecond := context.WithCancel(ctx)
		ends := make(chan error, 2)
		go func() {
			ends <- candidate("a").Run(first, func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				<-release
				order <- "a has stopped"
				return nil
			})
		}()
		Eventually(started).WithContext(ctx).Should(BeClosed())
		go func() {
			ends <- candidate("b").Run(second, func(ctx context.Context) error {
				order <- "b leads"
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
		Eventually(order).WithContext(ctx).Should(Receive(Equal("a has stopped")))
		Eventually(order).WithContext(ctx).Should(Receive(Equal("b leads")))
		stopSecond()
		Eventually(ends).WithContext(ctx).Should(Receive(BeNil()))
		Eventually(ends).WithContext(ctx).Should(Receive(BeNil()))
	})
})
