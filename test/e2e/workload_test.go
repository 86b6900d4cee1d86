//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	name = "worker"
	// program is the worker in its image.
	program   = "/worker"
	probePath = "/probe"
	// probeVolume is where the programs write their logs.
	probeVolume = "probe"
)

// example is a folder of config/examples.
type example string

const (
	files   example = "files"
	sidecar example = "sidecar"
	linked  example = "linked"
	// partitions is the linked example with a program that works on partitions.
	partitions example = "partitions"
	// drain is the files example with a drain hook.
	drain example = "drain"
	// run is a program of another image, started by idalloc run.
	run example = "run"
	// variable is a program that gets its id as a variable.
	variable example = "env"
)

// command returns that of the program's container in the one image of the suite. test/worker logs what the program
// of the example reads, or works in its place where no other program can see under which id it does.
func (e example) command() []string {
	switch e {
	case linked, partitions, variable:
		return []string{program, string(e)}
	case run:
		return []string{"/opt/idalloc/idalloc", "run", "--"}
	default:
		return []string{program, "files", e.program()}
	}
}

// program returns the one that does the work.
func (e example) program() string {
	if e == linked || e == partitions {
		return program
	}
	return "/fileworker"
}

// workload is one example in a namespace of its own, with a probe directory of its own.
type workload struct {
	example
	namespace string
	probes    string
	manifest  *manifest
	// overlaps: the spec is about one, and looks for it itself.
	overlaps bool
	// divides is the number of partitions; 0: its programs work under ids, and log these.
	divides int
}

// newWorkload makes the namespace and the probe directory; both go at the end of the specs.
func newWorkload(ctx context.Context, e example) *workload {
	GinkgoHelper()
	probes := probeDirectory()
	space, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-e2e-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	w := &workload{example: e, namespace: space.Name, probes: probes}
	// The next specs shall have the machine for themselves, so this waits until all pods are gone; the
	// namespace, which takes longer, is removed meanwhile.
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		Expect(w.kubectl(ctx, "delete", "deployment", name, "--ignore-not-found", "--cascade=foreground", "--timeout=2m")).Error().NotTo(HaveOccurred())
		Expect(w.kubectl(ctx, "delete", "namespace", w.namespace, "--wait=false")).Error().NotTo(HaveOccurred())
	}, NodeTimeout(patience))

	w.manifest, err = render(ctx, "examples/"+string(e))
	Expect(err).NotTo(HaveOccurred())
	w.adapt()
	return w
}

// probeDirectory makes one, which goes when the specs end.
func probeDirectory() string {
	GinkgoHelper()
	probes, err := os.MkdirTemp(os.Getenv("E2E_PROBE_ROOT"), "idalloc-probe-")
	Expect(err).NotTo(HaveOccurred())
	// The containers run as another user.
	Expect(os.Chmod(probes, 0o777)).To(Succeed()) //nolint:gosec // see above, and it is a test's
	DeferCleanup(os.RemoveAll, probes)
	return probes
}

// adapt changes what a test needs changed: the name, the image, and the probe directory of the program.
func (w *workload) adapt() {
	// The specs call every workload alike.
	w.manifest.deployment.Name, w.manifest.role.Rules[0].ResourceNames = name, []string{name}
	w.manifest.deployment.Spec.Template.Spec.ServiceAccountName, w.manifest.serviceAccount.Name, w.manifest.binding.Subjects[0].Name = idalloc, idalloc, idalloc
	w.manifest.deployment.Spec.Template.Labels[rankedLabel] = "no"
	pod := &w.manifest.deployment.Spec.Template.Spec
	pod.SecurityContext.RunAsUser = new(int64(65532)) // images of CLUSTER_LOAD say none
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			list[i].Image, list[i].ImagePullPolicy = image, corev1.PullNever
		}
	}
	worker := w.manifest.container(name)
	worker.Command = w.command()
	if w.example == run {
		worker.Args = []string{program, "env"}
	}
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "PROBE_DIR", Value: probePath})
	if w.example == variable { // the program knows the id by the key's name
		id := worker.Env[slices.IndexFunc(worker.Env, func(e corev1.EnvVar) bool { return e.Name == "MACHINE_ID" })]
		id.Name = "IDALLOC_ID"
		worker.Env = append(worker.Env, id)
	}
	worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: probeVolume, MountPath: probePath})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: probeVolume, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: w.probes, Type: new(corev1.HostPathDirectory)},
	}})
}

// apply does what a user does with the manifests.
func (w *workload) apply(ctx context.Context) {
	GinkgoHelper()
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{w.manifest.serviceAccount, w.manifest.role, w.manifest.binding, w.manifest.deployment}}
	b, err := json.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.kubectlIn(ctx, string(b), "apply", "-f", "-")).Error().NotTo(HaveOccurred())
}

func (w *workload) kubectl(ctx context.Context, args ...string) (string, error) {
	return w.kubectlIn(ctx, "", args...)
}

func (w *workload) kubectlIn(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"-n", w.namespace}, args...)...) //nolint:gosec // arguments of the tests
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

func (w *workload) scale(ctx context.Context, n string) {
	GinkgoHelper()
	Expect(w.kubectl(ctx, "scale", "deployment", name, "--replicas="+n)).Error().NotTo(HaveOccurred())
}

func (w *workload) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	return client.AppsV1().Deployments(w.namespace).Get(ctx, name, metav1.GetOptions{})
}

func (w *workload) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
