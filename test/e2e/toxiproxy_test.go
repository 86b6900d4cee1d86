//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toxiproxy is a running toxiproxy server on the node, between pods and the API server.
type toxiproxy struct {
	api string
	// taps are between the proxies, by name, and the API server.
	taps map[string]*tap
	// ports are where the proxies listen.
	ports map[string]string
}

// toxic is what its API takes. Attributes depend on the type.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]int `json:"attributes"`
}

// startToxiproxy starts the program that CHAOS_TOXIPROXY names; it ends with the spec.
func startToxiproxy(ctx context.Context) *toxiproxy {
	GinkgoHelper()
	program := os.Getenv("CHAOS_TOXIPROXY")
	Expect(program).To(BeAnExistingFile(), "set CHAOS_TOXIPROXY to toxiproxy's server; hack/chaos builds it")
	port := freePort(ctx)
	cmd := exec.Command(program, "-host", "127.0.0.1", "-port", port) //nolint:gosec,noctx // what hack/chaos built; it ends in the cleanup
	cmd.Stdout, cmd.Stderr = io.Discard, GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t := &toxiproxy{api: "http://127.0.0.1:" + port, taps: map[string]*tap{}, ports: map[string]string{}}
	Eventually(func(ctx context.Context) error { return t.do(ctx, http.MethodGet, "/version", nil) }).WithContext(ctx).Should(Succeed())
	return t
}

func freePort(ctx context.Context) string {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(l.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return port
}

// between makes the pods of a Deployment reach the API server through a proxy of this name. The
// connection is TLS from end to end, so the API server's certificate must be good for the node's address.
func (t *toxiproxy) between(ctx context.Context, proxy string) change {
	GinkgoHelper()
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(nodes.Items).To(HaveLen(1))
	var address string
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}
	port := freePort(ctx)
	counts, upstream := startTap(ctx, server.Host)
	t.taps[proxy], t.ports[proxy] = counts, port
	Expect(t.do(ctx, http.MethodPost, "/proxies", map[string]any{
		"name": proxy, "listen": net.JoinHostPort(address, port), "upstream": upstream, "enabled": true,
	})).To(Succeed())
	return func(s *appsv1.DeploymentSpec) {
		pod := &s.Template.Spec
		for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range list {
				list[i].Env = append(list[i].Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: address}, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: port})
			}
		}
	}
}

func (t *toxiproxy) add(ctx context.Context, proxy string, toxics ...toxic) error {
	for _, x := range toxics {
		if err := t.do(ctx, http.MethodPost, "/proxies/"+proxy+"/toxics", x); err != nil {
			return err
		}
	}
	return nil
}

func (t *toxiproxy) remove(ctx context.Context, proxy string, toxics ...toxic) error {
	for _, x := range toxics {
		if err := t.do(ctx, http.MethodDelete, "/proxies/"+proxy+"/toxics/"+x.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// traffic returns what came through a proxy so far.
func (t *toxiproxy) traffic(proxy string) traffic {
	n := t.taps[proxy]
	return traffic{answered: n.answered.Load(), opened: n.opened.Load(), closed: n.closed.Load()}
}

// enable lets a proxy work, or cuts its connections and refuses new ones.
func (t *toxiproxy) enable(ctx context.Context, proxy string, on bool) error {
	return t.do(ctx, http.MethodPost, "/proxies/"+proxy, map[string]any{"enabled": on})
}

// reset removes all toxics and enables all proxies.
func (t *toxiproxy) reset(ctx context.Context) error {
	return t.do(ctx, http.MethodPost, "/reset", nil)
}

func (t *toxiproxy) do(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, t.api+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // read only
	if answer.StatusCode >= http.StatusMultipleChoices {
		why, err := io.ReadAll(answer.Body)
		return errors.Join(fmt.Errorf("toxiproxy: %s %s: %s: %s", method, path, answer.Status, why), err)
	}
	return nil
}
