package envtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// log is what a process has written so far.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns all that was written.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// prometheus answers a query with the loads of the workload.
func (w *scaled) prometheus() string {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		reading, err := w.Read(r.Context())
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadGateway)
			return
		}
		separator := ""
		_, _ = io.WriteString(out, `{"status":"success","data":{"resultType":"vector","result":[`)
		for p, v := range reading.Values {
			_, _ = fmt.Fprintf(out, `%s{"metric":{"partition":"%d"},"value":[0,"%g"]}`, separator, p, v)
			separator = ","
		}
		_, _ = io.WriteString(out, "]}}")
	}))
	DeferCleanup(server.Close)
	return server.URL
}

var _ = Describe("The command", func() {
	It("scales with the flags of the example, shows metrics, and gives the lease back", func(ctx SpecContext) {
		w := deploy(ctx)
		kubeconfig, err := env.ControlPlane.WriteKubeconfig("autoscaler_"+w.Name, w.config)
		Expect(err).NotTo(HaveOccurred())
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		address := listener.Addr().String()
		Expect(listener.Close()).To(Succeed())

		cmd := exec.Command(autoscaler, "run", "deployment/"+name, "-n", w.Name, "--capacity=100", "--max-replicas=20", "--source=prometheus", "--source-url="+w.prometheus(), //nolint:gosec // the program under test, which ends below
			"--prometheus-query=q", "--period=200ms", "--window=1s", "--every=1s", "--after-up=2s", "--http-address="+address)
		said := &log{}
		cmd.Stdout, cmd.Stderr = said, said
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME=autoscaler-0", "IDALLOC_AUTOSCALER_AFTER_DOWN=3s")
		group, err := process.NewGroup()
		Expect(err).NotTo(HaveOccurred())
		running, err := group.Start(cmd)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			running.Kill()
			<-running.Done()
			GinkgoWriter.Println(said)
		})

		w.loads(250)
		w.settles(ctx, 3)
		w.loads(60)
		w.settles(ctx, 1)
		metrics := func() string {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			answer, err := http.DefaultClient.Do(r)
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = answer.Body.Close() }()
			text, err := io.ReadAll(answer.Body)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		whose := fmt.Sprintf(`owner_kind="Deployment",owner_name="worker",owner_namespace=%q`, w.Name)
		Eventually(metrics).WithContext(ctx).Should(And(
			ContainSubstring("idalloc_autoscaler_leader{"+whose+"} 1\n"), ContainSubstring("idalloc_autoscaler_pods_wanted{"+whose+"} 1\n"),
			ContainSubstring(`idalloc_autoscaler_decisions_total{action="scale",`+whose+`,reason="Overload"} 1`),
			ContainSubstring(`idalloc_autoscaler_decisions_total{action="scale",`+whose+`,reason="Empty"} 1`),
		))
		Expect(said.String()).To(ContainSubstring("id 0 has 250 of 100 units/s: scale from 1 to 3 pods"))

		running.Signal(syscall.SIGTERM)
		Eventually(running.Done()).WithContext(ctx).Should(BeClosed())
		Expect(running.ExitCode()).To(BeZero(), said.String())
		found, err := env.Client.CoordinationV1().Leases(w.Name).Get(ctx, lease, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*found.Spec.HolderIdentity).To(BeEmpty())
	})
})
