//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const secretHeader = "Idalloc-Drain-Secret" //nolint:gosec // the name of a header, not what it carries

var _ = Describe("A pod that shares its node's network", func() {
	It("takes the word that its work has stopped from nobody without its secret", func(ctx SpecContext) {
		// This process is on the node, too. The program says its word here, and it is passed on or not.
		words := make(chan string, 1)
		relay := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			select {
			case words <- r.Header.Get(secretHeader):
			default: // it is said again every second
			}
			rw.WriteHeader(http.StatusNoContent)
		}))
		DeferCleanup(relay.Close)

		w := prepare(ctx, drain, 1, hostNetwork)
		worker := w.manifest.container(name)
		for i := range worker.Env {
			if worker.Env[i].Name == "DRAIN_URL" {
				worker.Env[i].Value = relay.URL
			}
		}
		worker.Env = append(worker.Env, corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
		port := freePort(ctx)
		w.listenOn(port)
		w.apply(ctx)
		before := w.held(ctx, 1)

		By("beginning a revision, whose pod needs another port of the node")
		w.listenOn(freePort(ctx))
		w.apply(ctx)
		var secret string
		Eventually(words).WithContext(ctx).Should(Receive(&secret))
		Expect(secret).NotTo(BeEmpty())
		for _, wrong := range []string{"", "guessed"} {
			code, body := saysDrained(ctx, port, wrong)
			Expect(code).To(Equal(http.StatusForbidden))
			Expect(body).To(ContainSubstring("file drain-secret of --dir"))
		}
		Expect(w.assignment(ctx, NewGomega(Fail))).To(Equal(before))

		code, body := saysDrained(ctx, port, secret)
		Expect(code).To(Equal(http.StatusNoContent), body)
		Expect(w.held(ctx, 1)).NotTo(Equal(before))
	}, SpecTimeout(2*patience))
})

// hostNetwork: the pods are in their node's network, where the address of a Service may not work.
func hostNetwork(s *appsv1.DeploymentSpec) {
	GinkgoHelper()
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	serverAt(server.Hostname(), server.Port())(s)
	s.Template.Spec.HostNetwork = true
}

// listenOn makes idalloc serve HTTP on this port.
func (w *workload) listenOn(port string) {
	GinkgoHelper()
	number, err := strconv.ParseInt(port, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	c := w.manifest.container("idalloc")
	c.Ports[0].ContainerPort = int32(number)
	c.Args = []string{"watch", "--drain=http", "--http-address=:" + port}
}

// saysDrained says over the node's loopback interface that the work has stopped.
func saysDrained(ctx context.Context, port, secret string) (code int, body string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+net.JoinHostPort("127.0.0.1", port)+"/v1/drained", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if secret != "" {
		r.Header.Set(secretHeader, secret)
	}
	answer, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	b, err := io.ReadAll(answer.Body)
	Expect(errors.Join(err, answer.Body.Close())).To(Succeed())
	return answer.StatusCode, string(b)
}
