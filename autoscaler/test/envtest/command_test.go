package envtest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/process"
)

var _ = Describe("The command", func() {
	It("scales with the flags of the example, shows metrics, and gives the lease back", func(ctx SpecContext) {
		w := deploy(ctx)
		kubeconfig, err := env.ControlPlane.WriteKubeconfig("autoscaler_"+w.Name, w.config)
		Expect(err).NotTo(HaveOccurred())
		address, err := controlplane.FreeAddress(ctx)
		Expect(err).NotTo(HaveOccurred())

		cmd := exec.Command(autoscaler, "run", "deployment/"+name, "-n", w.Name, "--capacity=100", "--max-replicas=20", "--source=prometheus", "--source-url="+w.prometheus(), //nolint:gosec // the program under test, which ends below
			"--prometheus-query=q", "--period=200ms", "--window=1s", "--every=1s", "--after-up=2s", "--http-address="+address)
		said := gbytes.NewBuffer()
		cmd.Stdout, cmd.Stderr = said, said
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME=autoscaler-0", "IDALLOC_AUTOSCALER_AFTER_DOWN=3s")
		group, err := process.NewGroup()
		Expect(err).NotTo(HaveOccurred())
		running, err := group.Start(cmd)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			running.Kill()
			<-running.Done()
			GinkgoWriter.Println(string(said.Contents()))
		})

		w.load.Store(250)
		w.settles(ctx, 3)
		w.load.Store(60)
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
		Expect(string(said.Contents())).To(ContainSubstring("id 0 has 250 of 100 units/s: scale from 1 to 3 pods"))

		running.Signal(syscall.SIGTERM)
		Eventually(running.Done()).WithContext(ctx).Should(BeClosed())
		Expect(running.ExitCode()).To(BeZero(), string(said.Contents()))
		found, err := env.Client.CoordinationV1().Leases(w.Name).Get(ctx, lease, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*found.Spec.HolderIdentity).To(BeEmpty())
	})
})
