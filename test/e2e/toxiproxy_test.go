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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toxiproxy is a toxiproxy server on the node between the pods of one workload and the API server. Toxics are never
// removed: v2.12.0 panics when one is added after another one was removed from a connection that was closing. The server
// starts afresh instead, which ends its connections.
type toxiproxy struct {
	program string
	// address and port are where the pods reach it, upstream is the API server's address, api that of its own API.
	address, port, upstream, api string
	// faults is for one fault at a time: what ends one ends all.
	faults turn
	cmd    *exec.Cmd
}

// toxic is what its API takes. Attributes depend on the type.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]int `json:"attributes"`
}

// startToxiproxy starts the program that CHAOS_TOXIPROXY names; it ends with the spec. The
// connection is TLS from end to end, so the API server's certificate must be good for the node's address.
func startToxiproxy(ctx context.Context) *toxiproxy {
	GinkgoHelper()
	t := &toxiproxy{program: os.Getenv("CHAOS_TOXIPROXY"), port: freePort(ctx), faults: make(turn, 1)}
	Expect(t.program).To(BeAnExistingFile(), "set CHAOS_TOXIPROXY to toxiproxy's server; hack/chaos builds it")
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(nodes.Items).NotTo(BeEmpty()) // of several, which are all this machine, the first will do
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			t.address = a.Address
		}
	}
	t.upstream = server.Host
	t.api = net.JoinHostPort("127.0.0.1", freePort(ctx))
	DeferCleanup(t.stop)
	Expect(t.start(ctx)).To(Succeed())
	return t
}

// start starts the server with one proxy, and blocks until it works.
func (t *toxiproxy) start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(t.api)
	if err != nil {
		return err
	}
	cmd := exec.Command(t.program, "-host", host, "-port", port) //nolint:gosec,noctx // what hack/chaos built; stop ends it
	cmd.Stdout, cmd.Stderr = io.Discard, GinkgoWriter
	if err := cmd.Start(); err != nil {
		return err
	}
	t.cmd = cmd
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := t.do(ctx, http.MethodPost, "/proxies", map[string]any{
			"name": proxyName, "listen": net.JoinHostPort(t.address, t.port), "upstream": t.upstream, "enabled": true,
		})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-again.C:
		}
	}
}

func (t *toxiproxy) stop() {
	if t.cmd != nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait() // it was killed
	}
	t.cmd = nil
}

// restart ends all faults, and all connections.
func (t *toxiproxy) restart(ctx context.Context) error {
	t.stop()
	return t.start(ctx)
}

const proxyName = "api"

func freePort(ctx context.Context) string {
	GinkgoHelper()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(l.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return port
}

// between makes the pods of a Deployment reach the API server through the proxy.
func (t *toxiproxy) between(s *appsv1.DeploymentSpec) { serverAt(t.address, t.port)(s) }

func (t *toxiproxy) add(ctx context.Context, toxics ...toxic) error {
	for _, x := range toxics {
		if err := t.do(ctx, http.MethodPost, "/proxies/"+proxyName+"/toxics", x); err != nil {
			return err
		}
	}
	return nil
}

// disable cuts the connections and refuses new ones.
func (t *toxiproxy) disable(ctx context.Context) error {
	return t.do(ctx, http.MethodPost, "/proxies/"+proxyName, map[string]any{"enabled": false})
}

func (t *toxiproxy) do(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+t.api+path, bytes.NewReader(text))
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
