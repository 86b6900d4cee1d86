//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	injectFolder = "../../config/inject"
	injectLabel  = "idalloc.dev/inject"
	injectedKey  = "idalloc.dev/injected"
	idalloc      = "idalloc"
	// fenceAfterKey asks for strict mode.
	fenceAfterKey = "inject.idalloc.dev/fence-after"
)

var _ = Describe("A Deployment with a label and nothing else about idalloc", func() {
	DescribeTable("gets ids, and keeps them through a scale and a rollout", func(ctx SpecContext, apply func(w *workload, ctx context.Context)) {
		w := prepare(ctx, files, 2, bare, rolling("0", "2"))
		injectByPolicy(ctx, w.namespace)
		apply(w, ctx)
		before := w.held(ctx, 2)
		w.scale(ctx, "3")
		after := w.held(ctx, 3)
		expectKept(before, after)
		w.restart(ctx)
		w.held(ctx, 3)
	},
		Entry("by the policy", Label(mainFlow), func(w *workload, ctx context.Context) {
			w.apply(ctx)
			d, err := w.deployment(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.Template.Spec.InitContainers).To(BeEmpty(), "the Deployment is as its user wrote it")
		}, SpecTimeout(2*patience)),
		Entry("by kubectl idalloc inject", func(w *workload, ctx context.Context) {
			w.applyInjected(ctx)
			d, err := w.deployment(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.Template.Spec.InitContainers).To(HaveLen(1))
		}, SpecTimeout(2*patience)),
	)
})

var _ = Describe("A Deployment with a label, in strict mode", Serial, func() {
	It("has all ids again when a node is lost, by the policy and by kubectl idalloc inject, although no person deletes anything", func(ctx SpecContext) {
		c := breakable()
		node := c.secondNode(ctx)
		byPolicy, byCommand := prepare(ctx, files, 2, bare, onBothNodes, fenced), prepare(ctx, files, 2, bare, onBothNodes, fenced)
		injectByPolicy(ctx, byPolicy.namespace)
		byPolicy.apply(ctx)
		byCommand.applyInjected(ctx)
		lost := map[*workload]string{}
		for _, w := range []*workload{byPolicy, byCommand} {
			w.held(ctx, 2)
			pods := w.podsOn(ctx, node)
			Expect(pods).To(HaveLen(1))
			lost[w] = pods[0]
		}

		for w, pod := range lost {
			w.cutOff(ctx, pod)
		}
		c.stopSecondKubelet()
		for w, pod := range lost {
			Eventually(func(g Gomega) {
				h := w.assignment(ctx, g)
				g.Expect(h).To(HaveLen(2))
				g.Expect(h).NotTo(ContainElement(pod))
			}).WithContext(ctx).WithTimeout(lostPatience).Should(Succeed())
			Expect(w.terminating(ctx, pod)).To(BeTrue(), "the object of %s stays", pod)
		}
	}, SpecTimeout(lostPatience+3*patience))
})

// fenced asks for strict mode. The program stops when its file is gone, so the command has nothing to do.
func fenced(s *appsv1.DeploymentSpec) {
	s.Template.Annotations[fenceAfterKey] = chaosFence
	s.Template.Annotations["inject.idalloc.dev/fence-exec"] = "/idalloc version"
}

// bare takes out of the example with files what idalloc needs, and says in the template that the pods want it. The test's image has
// another name than the default.
func bare(s *appsv1.DeploymentSpec) {
	t := &s.Template
	t.Labels[injectLabel] = "true"
	t.Annotations = map[string]string{"inject.idalloc.dev/image": image}
	pod := &t.Spec
	pod.ServiceAccountName, pod.AutomountServiceAccountToken, pod.InitContainers = "", nil, nil
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == idalloc })
	c := &pod.Containers[0]
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == idalloc })
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == idalloc || v.Name == "token" })
}

// injectByPolicy has config/inject in force until the spec ends.
func injectByPolicy(ctx context.Context, namespace string) {
	GinkgoHelper()
	install(ctx, injectFolder, "mutatingadmissionpolicybinding/idalloc-inject")
	inForce(ctx, namespace, metav1.ObjectMeta{
		Labels: map[string]string{injectLabel: "true"}, Annotations: map[string]string{"inject.idalloc.dev/service-account": "default"},
	}, HaveField("Annotations", HaveKeyWithValue(injectedKey, "true")))
}

// install applies a folder until the spec ends. What the cluster had before stays.
func install(ctx context.Context, folder, binding string) {
	GinkgoHelper()
	kubectl := (&workload{namespace: metav1.NamespaceDefault}).kubectl
	if _, err := kubectl(ctx, "get", binding); err != nil {
		Expect(err).To(MatchError(ContainSubstring("NotFound")))
		DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
			Expect(kubectl(ctx, "delete", "-k", folder)).Error().NotTo(HaveOccurred())
		}, NodeTimeout(patience))
	}
	Expect(kubectl(ctx, "apply", "-k", folder)).Error().NotTo(HaveOccurred())
}

// inForce waits until the policies change a pod that a controller makes with these labels, and refuse one by itself.
func inForce(ctx context.Context, namespace string, meta metav1.ObjectMeta, changed OmegaMatcher) {
	GinkgoHelper()
	meta.GenerateName = "probe-"
	alone := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}
	made := alone.DeepCopy()
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "probe", UID: "c0ffee", Controller: new(true)}}
	create := func(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
		return client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	Eventually(create).WithContext(ctx).WithArguments(made).Should(changed)
	Eventually(func(ctx context.Context) error {
		_, err := create(ctx, alone)
		return err
	}).WithContext(ctx).Should(MatchError(ContainSubstring("a pod by itself has nothing to number it by")))
}

// applyInjected is apply, by "kubectl idalloc inject -f - | kubectl apply -f -".
func (w *workload) applyInjected(ctx context.Context) {
	GinkgoHelper()
	Expect(w.kubectlIn(ctx, w.injected(ctx), "apply", "-f", "-")).Error().NotTo(HaveOccurred())
}

// injected returns the manifests as "kubectl idalloc inject -f -" writes them.
func (w *workload) injected(ctx context.Context, args ...string) string {
	GinkgoHelper()
	manifests, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "List", "items": []any{w.manifest.serviceAccount, w.manifest.role, w.manifest.binding, w.manifest.deployment},
	})
	Expect(err).NotTo(HaveOccurred())
	injected, err := w.plugin(ctx, string(manifests), append([]string{"inject", "-f", "-"}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return injected
}

// plugin runs "kubectl idalloc". kubectl finds the plugin beside the command idalloc.
func (w *workload) plugin(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{idalloc}, args...)...) //nolint:gosec // arguments of the tests
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(os.Getenv("E2E_IDALLOC"))+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl idalloc %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
