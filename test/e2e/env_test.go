//go:build e2e

package e2e

import (
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("The env example", func() {
	It("gives each program its id as a variable, and the next one the same", Label(mainFlow), func(ctx SpecContext) {
		w := newWorkload(ctx, variable)
		w.manifest.deployment.Spec.Replicas = new(int32(3))
		// The suite's program asks for more, under names of its own.
		program := w.manifest.container(name)
		for _, key := range []string{"IDALLOC_ID", "IDALLOC_COUNT"} {
			program.Env = append(program.Env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
				VolumeName: "idalloc", Path: "env", Key: key,
			}}})
		}
		w.apply(ctx)
		before := w.held(ctx, 3)
		for id, pod := range before {
			said, err := w.kubectl(ctx, "exec", pod, "-c", name, "--", "/worker", "variable", "MACHINE_ID")
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.TrimSpace(said)).To(Equal(strconv.Itoa(id)))
		}
		Expect(w.kubectl(ctx, "rollout", "restart", "deployment", name)).Error().NotTo(HaveOccurred())
		after := w.held(ctx, 3)
		for id, pod := range before {
			Expect(after[id]).NotTo(Equal(pod))
		}
		w.expectNoOverlap()
	}, SpecTimeout(patience))
})
