//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cluster is what the specs that break it need to know of it.
type cluster struct{ up, pids string }

// breakable returns the cluster whose parts may be killed, and skips the spec if this one's may not.
func breakable() cluster {
	GinkgoHelper()
	c := cluster{os.Getenv("CLUSTER_UP"), os.Getenv("CLUSTER_PIDS")}
	if c.up == "" || c.pids == "" || os.Geteuid() != 0 {
		Expect(os.Getenv("CI")).To(BeEmpty(), "CI skips nothing: set CLUSTER_UP and CLUSTER_PIDS, as hack/e2e says, and be root")
		Skip("set CLUSTER_UP and CLUSTER_PIDS, as hack/e2e says, and be root")
	}
	return c
}

// signal sends a signal to parts of the cluster, by the names of their pid files.
func (c cluster) signal(sig syscall.Signal, parts ...string) {
	GinkgoHelper()
	for _, part := range parts {
		pid, err := c.pid(part)
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(pid, sig)).To(Succeed(), "%s to %s", sig, part)
		if sig == syscall.SIGKILL { // or it would be taken for running
			Eventually(func() error { return syscall.Kill(pid, 0) }).WithTimeout(patience).Should(MatchError(syscall.ESRCH), part)
		}
	}
}

// kill signals a part of the cluster once.
func (c cluster) kill(sig syscall.Signal, part string) error {
	pid, err := c.pid(part)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// pid reads a part's pid file.
func (c cluster) pid(part string) (int, error) {
	text, err := os.ReadFile(filepath.Join(c.pids, part+".pid")) //nolint:gosec // the folder that the caller of the suite names
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// start starts what does not run and waits for it.
func (c cluster) start(ctx context.Context) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, c.up).CombinedOutput() //nolint:gosec // the command that the caller of the suite names
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// stopKubelet suspends the kubelet until the spec ends or resume is called: the node does not answer
// any more, and its containers run on.
func (c cluster) stopKubelet() (resume func()) {
	GinkgoHelper()
	c.signal(syscall.SIGSTOP, "kubelet")
	resume = func() { c.signal(syscall.SIGCONT, "kubelet") }
	DeferCleanup(resume)
	return resume
}

// cutOff drops what a pod sends to the API server, until the spec ends or mend is called.
func (w *workload) cutOff(ctx context.Context, pod string) (mend func()) {
	GinkgoHelper()
	p, err := client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	// The address is translated before this rule sees it: 6443 is the port of the server itself.
	rule := []string{"INPUT", "-s", p.Status.PodIP, "-p", "tcp", "--dport", "6443", "-j", "DROP"}
	iptables := func(action string) ([]byte, error) {
		return exec.Command("iptables", append([]string{"-w", action}, rule...)...).CombinedOutput() //nolint:gosec,noctx // fixed arguments; the cleanup has no context
	}
	out, err := iptables("-I")
	Expect(err).NotTo(HaveOccurred(), string(out))
	mended := false
	mend = func() {
		if mended {
			return
		}
		mended = true
		out, err := iptables("-D")
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
	DeferCleanup(mend)
	return mend
}

// suspend stops the process of a pod until the spec ends or resume is called.
func suspend(pod string) (resume func()) {
	GinkgoHelper()
	pid := processOf(pod)
	Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // it may have ended
	DeferCleanup(resume)
	return resume
}

// processOf finds the process of a pod of the linked example: the node is this machine.
func processOf(pod string) int {
	GinkgoHelper()
	running, err := processes(pod)
	Expect(err).NotTo(HaveOccurred())
	program := filepath.Base(linked.program())
	Expect(running).To(HaveKey(program), "processes of "+pod+" on this machine")
	return running[program]
}

// processes returns those of the containers of a pod, by the names of their programs. A restarted
// container's is another one.
func processes(pod string) (map[string]int, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, path := range environments {
		if !belongs(path, pod) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		program, err := os.ReadFile(filepath.Join(dir, "comm")) //nolint:gosec // of /proc
		if err == nil {
			found[strings.TrimSpace(string(program))] = pid
		}
	}
	return found, nil
}

// belongs tells by the environment: a container that does not ask for its pod's name has it as the host's.
func belongs(environ, pod string) bool {
	env, err := os.ReadFile(environ) //nolint:gosec // of /proc
	if err != nil {
		return false
	}
	env = append([]byte{0}, env...)
	return bytes.Contains(env, []byte("\x00POD_NAME="+pod+"\x00")) || bytes.Contains(env, []byte("\x00HOSTNAME="+pod+"\x00"))
}
