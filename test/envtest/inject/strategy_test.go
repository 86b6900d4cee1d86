package inject

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
)

// warnings are what the API server said beside its answers.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// apply writes a Deployment without storing it, and returns what the API server warned of.
func apply(ctx context.Context, namespace, workload string) []string {
	GinkgoHelper()
	c, w := warned()
	_, err := c.AppsV1().Deployments(namespace).Create(ctx, deployment(workload), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	Expect(err).NotTo(HaveOccurred())
	return w.said
}

// warned returns a client, and what it is warned of.
func warned() (kubernetes.Interface, *warnings) {
	GinkgoHelper()
	w := &warnings{}
	config := rest.CopyConfig(plane.Config())
	config.WarningHandler = w
	c, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c, w
}

func deployment(workload string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(yaml.UnmarshalStrict([]byte(workload), d)).To(Succeed())
	return d
}

var _ = Describe("who writes a Deployment with the label", Ordered, func() {
	const never = "its next rolling update would wait for ever: "
	var namespace string
	BeforeAll(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		Eventually(apply).WithArguments(ctx, namespace, plain).ShouldNot(BeEmpty(), "the policy is in force")
	}, NodeTimeout(patience))

	DescribeTable("is warned of a rolling update that would wait for ever, by the policy and by the command", func(ctx SpecContext, spec, sentence string) {
		workload := with("spec:\n  selector", "spec:\n  "+spec+"\n  selector")
		if spec == drains {
			workload = annotated("inject.idalloc.dev/drain: http")
		}
		byPolicy := apply(ctx, namespace, workload)
		var byCommand []string
		_, _, err := inject.Stream(workload, inject.Options{Warn: func(s string) { byCommand = append(byCommand, s) }})
		Expect(err).NotTo(HaveOccurred())
		if sentence == "" {
			Expect(byPolicy).To(BeEmpty())
			Expect(byCommand).To(BeEmpty())
			return
		}
		Expect(byCommand).To(HaveLen(1))
		Expect(byCommand[0]).To(HavePrefix("Deployment/worker: " + never + sentence))
		Expect(byPolicy).To(HaveLen(1))
		Expect(byPolicy[0]).To(HaveSuffix(byCommand[0][len("Deployment/worker: "):]), "the same sentence")
	},
		Entry("with nothing said", "paused: false", "with replicas: 1, maxUnavailable (25%) is 0, so"),
		Entry("with three replicas", "replicas: 3", "with replicas: 3, maxUnavailable (25%) is 0, so"),
		Entry("with four replicas", "replicas: 4", ""),
		Entry("with no replicas", "replicas: 0", ""),
		Entry("with a number", "replicas: 8\n  strategy: {rollingUpdate: {maxUnavailable: 0}}", "with replicas: 8, maxUnavailable (0) is 0, so"),
		Entry("with a percentage", "replicas: 8\n  strategy: {rollingUpdate: {maxUnavailable: 10%}}", "with replicas: 8, maxUnavailable (10%) is 0, so"),
		Entry("with no surge", "replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", ""),
		Entry("with neither, where Kubernetes ends one pod", "replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 25%}}", ""),
		Entry("with another strategy", "strategy: {type: Recreate}", ""),
		Entry("with a drain hook", drains, ""),
	)

	It("is not warned by a write that leaves the spec as it is, as those of pods do", func(ctx SpecContext) {
		c, w := warned()
		deployments := c.AppsV1().Deployments(newNamespace(ctx))
		d, err := deployments.Create(ctx, deployment(plain), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.said).To(HaveLen(1), "by its creation")
		_, err = deployments.Patch(ctx, d.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"demo":"1"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.said).To(HaveLen(1))
		_, err = deployments.Patch(ctx, d.Name, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.said).To(HaveLen(2), "by a change of its replicas")
	})

	It("is not warned without the label", func(ctx SpecContext) {
		Expect(apply(ctx, namespace, with(`, idalloc.dev/inject: "true"`, ""))).To(BeEmpty())
	})
})

// drains stands for an annotation of the template.
const drains = "drain: http"
