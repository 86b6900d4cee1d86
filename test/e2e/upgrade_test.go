//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// build is one version of idalloc: its folder config, and its images.
type build struct{ config, controller, image string }

// part is what an administrator or a user upgrades by itself. to returns when the part works.
type part struct {
	name string
	to   func(ctx context.Context, b build, of []*workload)
	// replaces is whether the pods of workloads are replaced.
	replaces bool
}

// controllerImage is the line of a manifest that names it.
var controllerImage = regexp.MustCompile(`(?m)image: \S*idalloc-controller\S*$`)

// nonRoot is where the user belongs: the images of the cluster say none.
var nonRoot = regexp.MustCompile(`runAsNonRoot: true(\n +runAsUser: 65532)?`)

var _ = Describe("An upgrade", Serial, Ordered, Label("upgrade"), func() {
	older := build{os.Getenv("E2E_OLDER_CONFIG"), os.Getenv("E2E_OLDER_CONTROLLER"), os.Getenv("E2E_OLDER_IMAGE")}
	if older.config == "" {
		return // hack/upgrade makes one
	}
	newer := build{config: "../../config", controller: os.Getenv("E2E_CONTROLLER")}
	BeforeAll(func(ctx SpecContext) {
		newer.image = image
		controllerByManifests(ctx) // it goes at the end
		DeferCleanup(func(ctx SpecContext) { newer.applyPolicies(ctx) }, NodeTimeout(patience))
	}, NodeTimeout(patience))

	policies := part{name: "the policies", to: func(ctx context.Context, b build, _ []*workload) { b.applyPolicies(ctx) }}
	controllers := part{name: "the controller", to: func(ctx context.Context, b build, _ []*workload) { b.applyController(ctx) }}
	pods := part{name: "the pods", replaces: true, to: func(ctx context.Context, b build, of []*workload) {
		for _, w := range of {
			w.use(b.image)
			w.apply(ctx)
		}
	}}

	DescribeTable("moves no id, stops no program and evicts no pod, forwards and back", func(ctx SpecContext, order ...part) {
		older.applyPolicies(ctx)
		older.applyController(ctx)
		one := rolling("0", "1")
		gated, agents, peers := prepare(ctx, files, 3, assigned, one), prepare(ctx, partitions, 3, labelled, one), prepare(ctx, partitions, 3, one)
		sidecars := prepare(ctx, sidecar, 3, one)
		agents.divide(agentPartitions)
		agents.becomeAgents(ctx)
		peers.divide(agentPartitions)
		all := []*workload{gated, agents, peers, sidecars}
		pods.to(ctx, older, all)

		for _, b := range []build{newer, older} {
			for _, p := range order {
				By(p.name + ": " + b.image)
				before := standing(ctx, all, 3)
				p.to(ctx, b, all)
				if now := standing(ctx, all, 3); p.replaces {
					before = now
				}
				scaleAll(ctx, all, "4")
				standing(ctx, all, 4)
				scaleAll(ctx, all, "3")
				Expect(standing(ctx, all, 3)).To(Equal(before))
			}
		}
		for _, w := range all {
			Expect(w.kubectl(ctx, "get", "events", "--field-selector=reason=PodRemoved", "-o", "name")).To(BeEmpty())
		}
	},
		Entry("in the order of the page", SpecTimeout(10*patience), policies, controllers, pods),
		Entry("in the opposite order", SpecTimeout(10*patience), pods, controllers, policies),
	)
})

func (b build) applyPolicies(ctx context.Context) {
	GinkgoHelper()
	w := &workload{namespace: metav1.NamespaceDefault}
	for _, folder := range []string{"policy", "assign"} {
		Expect(w.kubectl(ctx, "apply", "-k", filepath.Join(b.config, folder))).Error().NotTo(HaveOccurred())
	}
}

func (b build) applyController(ctx context.Context) {
	GinkgoHelper()
	w := &workload{namespace: "idalloc-system"}
	manifests, err := w.kubectl(ctx, "kustomize", filepath.Join(b.config, "controller"))
	Expect(err).NotTo(HaveOccurred())
	manifests = controllerImage.ReplaceAllString(manifests, "image: "+b.controller+"\n        imagePullPolicy: Never")
	manifests = nonRoot.ReplaceAllString(manifests, "runAsNonRoot: true\n        runAsUser: 65532")
	Expect(w.kubectlIn(ctx, manifests, "apply", "-f", "-")).Error().NotTo(HaveOccurred())
	Expect(w.kubectl(ctx, "rollout", "status", "deployment/idalloc-controller", "--timeout=2m")).Error().NotTo(HaveOccurred())
}

// use has all containers run this image.
func (w *workload) use(image string) {
	pod := &w.manifest.deployment.Spec.Template.Spec
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			list[i].Image = image
		}
	}
}

func scaleAll(ctx context.Context, all []*workload, n string) {
	GinkgoHelper()
	for _, w := range all {
		w.scale(ctx, n)
	}
}

// standing waits until each of n ids has a pod whose programs work, and returns pod and restarts of each id: those of all containers.
func standing(ctx context.Context, all []*workload, n int) map[string]string {
	GinkgoHelper()
	s := map[string]string{}
	for _, w := range all {
		for id, pod := range w.held(ctx, n) {
			s[fmt.Sprint(w.namespace, " ", id)] = fmt.Sprint(pod, ", restarts: ", w.allRestarts(ctx, pod))
		}
		if w.divides > 0 {
			w.divided(ctx, n)
		}
	}
	return s
}

// allRestarts returns the restarts of each container of a pod, by its name.
func (w *workload) allRestarts(ctx context.Context, pod string) map[string]int32 {
	GinkgoHelper()
	p, err := client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	all := map[string]int32{}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		all[c.Name] = c.RestartCount
	}
	Expect(all).To(HaveKey(name))
	return all
}
