package node_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("outages", func() {
	It("keeps processes through a restart of the API server", func(ctx SpecContext) {
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment(3, podSpec(shell("main", forever))), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(available(ctx)).Should(BeEquivalentTo(3))
		before := pids()
		Expect(before).To(HaveLen(3))

		cp.KillAPIServer()
		Expect(cp.StartAPIServer(ctx)).To(Succeed())
		Expect(pids()).To(Equal(before))
		scale(ctx, "4")
		Eventually(available(ctx)).Should(BeEquivalentTo(4))
		after := pids()
		for pod, pid := range before {
			Expect(after).To(HaveKeyWithValue(pod, pid))
		}
	})

	It("runs on while it is cut off, and catches up", func(ctx SpecContext) {
		createPod(ctx, "gone", podSpec(shell("main", forever)))
		createPod(ctx, "deleted", podSpec(shell("main", forever)))
		Eventually(getPod(ctx, "gone")).Should(Satisfy(beReady))
		Eventually(getPod(ctx, "deleted")).Should(Satisfy(beReady))
		before := pids()

		worker.Pause()
		defer worker.Resume()
		now := int64(0)
		pods := client.CoreV1().Pods(namespace)
		Expect(pods.Delete(ctx, "gone", metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		Expect(pods.Delete(ctx, "deleted", metav1.DeleteOptions{})).To(Succeed())
		createPod(ctx, "new", podSpec(shell("main", forever)))
		Consistently(pids, time.Second).Should(Equal(before))
		Expect(podNames(ctx)()).To(Equal([]string{"deleted", "new"}))

		worker.Resume()
		Eventually(getPod(ctx, "new")).Should(Satisfy(beReady))
		Eventually(podNames(ctx)).Should(Equal([]string{"new"}))
		Eventually(pids).Should(And(HaveLen(1), HaveKey("new")))
	})

	It("leaves no process behind when it stops", Serial, func(ctx SpecContext) {
		spec := podSpec(shell("main", "trap '' TERM; sleep 100000 & wait"))
		spec.InitContainers = []corev1.Container{sidecar("side", forever)}
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment(5, spec), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(available(ctx)).Should(BeEquivalentTo(5))
		left := worker.Processes()
		Expect(len(left)).To(BeNumerically(">=", 10))
		worker.Stop()
		for _, p := range left {
			Eventually(func() bool { return errors.Is(syscall.Kill(-p.PID, 0), syscall.ESRCH) }).Should(BeTrue(), "%+v", p)
		}
		worker = startNode(ctx)
	})
})

// pids returns the main processes of this spec's pods by pod.
func pids() map[string]int {
	found := map[string]int{}
	for _, p := range worker.Processes() {
		if p.Namespace == namespace && p.Container == "main" {
			found[p.Pod] = p.PID
		}
	}
	return found
}

func readFields(path string) []string {
	GinkgoHelper()
	content, err := os.ReadFile(path) //nolint:gosec // below the test's own directory
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(string(content))
}

func touch(path string) {
	GinkgoHelper()
	Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
}

func remove(path string) {
	GinkgoHelper()
	Expect(os.Remove(path)).To(Succeed())
}

type server struct{ stop func() error }

func (s server) Close() { Expect(s.stop()).To(Succeed()) }

func serve(address string) server {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(GinkgoT().Context(), "tcp", address)
	Expect(err).NotTo(HaveOccurred())
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(listener) }()
	return server{stop: s.Close}
}
