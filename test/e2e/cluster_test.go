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
	corev1 "k8s.io/api/core/v1"
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
		if sig == syscall.SIGKILL || sig == syscall.SIGTERM { // or it would be taken for running
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

// Parts of a second node.
const (
	secondKubelet    = "kubelet2"
	secondContainerd = "containerd2"
)

// secondNode adds a node until the spec ends, with the image of the suite. One that is there already stays.
func (c cluster) secondNode(ctx context.Context) string {
	GinkgoHelper()
	before := nodes(ctx)
	out, err := exec.CommandContext(ctx, c.up, "--nodes", "2").CombinedOutput() //nolint:gosec // the command that the caller of the suite names
	if err != nil {
		Expect(os.Getenv("CI")).To(BeEmpty(), "CI skips nothing: CLUSTER_UP --nodes 2 has to add a node: %v: %s", err, out)
		Skip("CLUSTER_UP --nodes 2 has to add a node: " + err.Error() + ": " + string(out))
	}
	if len(before) == 1 {
		DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
			c.signal(syscall.SIGTERM, secondKubelet, secondContainerd)
			c.start(ctx)
			Expect(nodes(ctx)).To(Equal(before))
		}, NodeTimeout(patience))
	}
	out, err = exec.CommandContext(ctx, os.Getenv("E2E_LOAD")).CombinedOutput() //nolint:gosec // what hack/e2e made
	Expect(err).NotTo(HaveOccurred(), "E2E_LOAD: %s", out)
	after := nodes(ctx)
	Expect(after).To(HaveLen(2))
	// A node that was away is Ready before Kubernetes stops to evict what runs there.
	Eventually(func(ctx context.Context) ([]corev1.Taint, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, after[1], metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return node.Spec.Taints, nil
	}).WithContext(ctx).WithTimeout(patience).Should(BeEmpty(), "taints of %s", after[1])
	return after[1]
}

// nodes returns the names of the nodes.
func nodes(ctx context.Context) []string {
	GinkgoHelper()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// stopSecondKubelet suspends the kubelet of the second node until the spec ends or resume is called: the node does not answer any more, and its
// containers run on.
func (c cluster) stopSecondKubelet() (resume func()) {
	GinkgoHelper()
	c.signal(syscall.SIGSTOP, secondKubelet)
	resume = func() { c.signal(syscall.SIGCONT, secondKubelet) }
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

// keepImages keeps the images of the suite on the nodes: a kubelet whose disk is nearly full removes images that no container has, and what was loaded by hand does not
// come back. So a pod on each node has a container of each, ended or not.
func keepImages(ctx context.Context) {
	GinkgoHelper()
	var nodes []corev1.Node
	Eventually(func(g Gomega, ctx context.Context) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		nodes = list.Items
		for i := range nodes {
			g.Expect(ownImages(&nodes[i])).To(ContainElement(image), "the images that the kubelet of %s names", nodes[i].Name)
		}
	}).WithContext(ctx).Should(Succeed())
	space, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-e2e-images-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(client.CoreV1().Namespaces().Delete(ctx, space.Name, metav1.DeleteOptions{})).To(Succeed())
	}, NodeTimeout(patience))
	for i := range nodes {
		keeper := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: nodes[i].Name, Namespace: space.Name},
			Spec:       corev1.PodSpec{NodeName: nodes[i].Name, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false)},
		}
		for n, name := range ownImages(&nodes[i]) {
			keeper.Spec.Containers = append(keeper.Spec.Containers, corev1.Container{Name: "image-" + strconv.Itoa(n), Image: name, ImagePullPolicy: corev1.PullNever})
		}
		_, err = client.CoreV1().Pods(space.Name).Create(ctx, keeper, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// ownImages returns the images on a node that were loaded for the suite, and the one that holds pods, where it was loaded with them.
func ownImages(node *corev1.Node) []string {
	var names []string
	for _, has := range node.Status.Images {
		for _, name := range has.Names {
			if strings.Contains(name, "/idalloc/") && !strings.Contains(name, "@") {
				names = append(names, name)
			}
		}
	}
	return names
}
