//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// usesFolder has the manifests of docs/uses.md. The specs apply them as they stand.
const usesFolder = "../../config/examples/uses"

// uses are specs of what docs/uses.md says.
func uses() {
	It("have a name by a Service, which leads to the pod that has the id now", func(ctx SpecContext) {
		u := applyUse(ctx, "name")
		for id, line := range u.lines(ctx, 2) {
			Expect(line).To(Equal("I am name-" + id))
		}
		leadsTo := func(ctx context.Context) ([]string, error) { return u.endpoints(ctx, "name-0") }
		before := u.holder(ctx, "0")
		Eventually(leadsTo).WithContext(ctx).Should(ConsistOf(before))
		u.end(ctx, before)
		Eventually(leadsTo).WithContext(ctx).Should(ConsistOf(u.next(ctx, "0", before)))
	}, SpecTimeout(2*patience))

	It("have a configuration, which follows changes only where no subPath is mounted", func(ctx SpecContext) {
		u := applyUse(ctx, "configuration")
		for id, line := range u.lines(ctx, 2) {
			Expect(line).To(Equal("my file is /etc/workers/" + id))
		}
		pod := u.holder(ctx, "0")
		read := func(ctx context.Context, file string) (string, error) {
			return u.kubectl(ctx, "exec", pod, "--", "cat", file)
		}
		Expect(read(ctx, "/etc/worker.conf")).To(Equal("region=north"))
		Expect(u.kubectl(ctx, "exec", u.holder(ctx, "1"), "--", "cat", "/etc/worker.conf")).To(Equal("region=south"))
		Expect(u.kubectl(ctx, "patch", "configmap", "configuration", "-p", `{"data":{"0":"region=east"}}`)).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega, ctx context.Context) {
			// The kubelet looks again when the pod changes.
			g.Expect(u.kubectl(ctx, "annotate", "pod", pod, "--overwrite", "idalloc.test/now="+time.Now().Format("150405.000"))).Error().NotTo(HaveOccurred())
			g.Expect(read(ctx, "/etc/workers/0")).To(Equal("region=east"))
		}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
		Expect(read(ctx, "/etc/worker.conf")).To(Equal("region=north"))
	}, SpecTimeout(2*patience))

	It("have a directory, in which the next pod with the id finds what the one before it left", func(ctx SpecContext) {
		u := newUse(ctx, "directory")
		shared := probeDirectory()
		u.volume(ctx, shared)
		u.apply(ctx)
		u.lines(ctx, 2)
		before := u.holder(ctx, "0")
		u.end(ctx, before)
		after := u.next(ctx, "0", before)
		Eventually(func() (string, error) {
			content, err := os.ReadFile(filepath.Join(shared, "0", "holders")) //nolint:gosec // a directory of the test
			return string(content), err
		}).WithContext(ctx).Should(Equal(before + "\n" + after + "\n"))
	}, SpecTimeout(2*patience))

	It("run the timers in one replica", func(ctx SpecContext) {
		u := applyUse(ctx, "timers")
		u.lines(ctx, 3)
		ticks := func(ctx context.Context, pod string) (string, error) { return u.kubectl(ctx, "logs", pod) }
		before := u.holder(ctx, "0")
		Eventually(ticks).WithContext(ctx).WithArguments(before).Should(ContainSubstring("tick"))
		began := time.Now()
		u.end(ctx, before)
		Eventually(func(ctx context.Context) (string, error) { return ticks(ctx, u.next(ctx, "0", before)) }).WithContext(ctx).Should(ContainSubstring("tick"))
		reportf("the timers", "run again %.1f s after the pod of id 0 was deleted", time.Since(began).Seconds())
		Expect(ticks(ctx, u.holder(ctx, "1"))).NotTo(ContainSubstring("tick"))
	}, SpecTimeout(2*patience))

	DescribeTable("have the id in a variable of another name, and the next pod has the same", func(ctx SpecContext, use, line string) {
		u := applyUse(ctx, use)
		for id, says := range u.lines(ctx, 3) {
			Expect(says).To(Equal(line + id))
		}
		before := u.holder(ctx, "1")
		u.end(ctx, before)
		u.next(ctx, "1", before)
		Expect(u.lines(ctx, 3)).To(HaveKeyWithValue("1", line+"1"))
	},
		Entry("a static member of a Kafka group", "kafka", "group.instance.id=orders-", SpecTimeout(2*patience)),
	)

	It("have a machine number, which rests before the next pod has it", func(ctx SpecContext) {
		const rests = 5 * time.Second // the manifest says so
		u := applyUse(ctx, "number")
		for id, says := range u.lines(ctx, 3) {
			Expect(says).To(Equal("machine number 10" + id))
		}
		before := u.holder(ctx, "1")
		u.end(ctx, before)
		Eventually(func(ctx context.Context) error {
			_, err := client.CoreV1().Pods(u.namespace).Get(ctx, before, metav1.GetOptions{})
			return err
		}).WithContext(ctx).WithPolling(100 * time.Millisecond).Should(MatchError(apierrors.IsNotFound, "not found"))
		gone := time.Now()
		u.next(ctx, "1", before)
		Expect(time.Since(gone)).To(BeNumerically(">", rests-time.Second))
		reportf("a machine number", "was used again %.1f s after its pod was gone", time.Since(gone).Seconds())
		Expect(u.lines(ctx, 3)).To(HaveKeyWithValue("1", "machine number 101"))
	}, SpecTimeout(2*patience))

	It("have the two variables of Argo CD's application controller", func(ctx SpecContext) {
		const name, says = "argocd-application-controller", "shard $ARGOCD_CONTROLLER_SHARD of $ARGOCD_CONTROLLER_REPLICAS"
		u := newUse(ctx, name)
		loadBusybox(ctx)
		Expect(u.kubectlIn(ctx, `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"`+name+`"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"`+name+
			`"}},"template":{"metadata":{"labels":{"app":"`+name+`"}},"spec":{"containers":[{"name":"`+name+`","image":"busybox:1.37","command":["sh","-c",`+
			`"trap 'exit 0' TERM; echo `+says+`; sleep infinity & wait"],"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}]}]}}}}`, "create", "-f", "-")).Error().NotTo(HaveOccurred())
		Expect(u.kubectl(ctx, "patch", "statefulset", name, "--patch-file", filepath.Join(usesFolder, "argo-cd.yaml"))).Error().NotTo(HaveOccurred())
		Expect(u.kubectl(ctx, "rollout", "status", "statefulset", name, "--timeout=2m")).Error().NotTo(HaveOccurred())
		Expect(u.lines(ctx, 2)).To(Equal(map[string]string{"0": "shard 0 of 2", "1": "shard 1 of 2"}))
	}, SpecTimeout(2*patience))
}

// use is a manifest of docs/uses.md in a namespace of its own. Its pods have its name as the label app.
type use struct {
	workload
	name string
	// said is the first line of each pod. Two kubelets of one machine delete each other's logs once a minute.
	said map[string]string
}

// newUse makes the namespace.
func newUse(ctx context.Context, name string) *use {
	GinkgoHelper()
	space, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-e2e-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	u := &use{workload{namespace: space.Name}, name, nil}
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		if CurrentSpecReport().Failed() {
			u.show(ctx, []string{"get", "pods,events", "-o", "wide", "-L", idLabel})
			u.show(ctx, []string{"logs", "-l", "app=" + name, "--prefix", "--tail=20", "--ignore-errors"})
		}
		Expect(u.kubectl(ctx, "delete", "deployments,statefulsets", "--all", "--cascade=foreground", "--timeout=2m")).Error().NotTo(HaveOccurred())
		Expect(u.kubectl(ctx, "delete", "namespace", u.namespace, "--wait=false")).Error().NotTo(HaveOccurred())
	}, NodeTimeout(patience))
	return u
}

func (u *use) apply(ctx context.Context) {
	GinkgoHelper()
	loadBusybox(ctx)
	Expect(u.kubectl(ctx, "apply", "-f", filepath.Join(usesFolder, u.name+".yaml"))).Error().NotTo(HaveOccurred())
}

func applyUse(ctx context.Context, name string) *use {
	GinkgoHelper()
	u := newUse(ctx, name)
	u.apply(ctx)
	return u
}

// volume makes a volume of a directory of this machine, on which all nodes are.
func (u *use) volume(ctx context.Context, directory string) {
	GinkgoHelper()
	made, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "idalloc-e2e-"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			ClaimRef:               &corev1.ObjectReference{Namespace: u.namespace, Name: "directory"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: directory}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) error { //nolint:contextcheck // a cleanup has a context of its own
		return client.CoreV1().PersistentVolumes().Delete(ctx, made.Name, metav1.DeleteOptions{})
	}, NodeTimeout(patience))
}

// running returns the pods of the use, by id, which are not Terminating.
func (u *use) running(ctx context.Context) (map[string]string, error) {
	list, err := client.CoreV1().Pods(u.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + u.name})
	if err != nil {
		return nil, err
	}
	pods := map[string]string{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			pods[p.Labels[idLabel]] = p.Name
		}
	}
	return pods, nil
}

// holder returns the pod that has an id.
func (u *use) holder(ctx context.Context, id string) string {
	GinkgoHelper()
	pods, err := u.running(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(pods).To(HaveKey(id))
	return pods[id]
}

// next waits until another pod has the id.
func (u *use) next(ctx context.Context, id, before string) string {
	GinkgoHelper()
	Eventually(u.running).WithContext(ctx).Should(HaveKeyWithValue(id, Not(Equal(before))))
	return u.holder(ctx, id)
}

func (u *use) end(ctx context.Context, pod string) {
	GinkgoHelper()
	Expect(u.kubectl(ctx, "delete", "pod", pod, "--wait=false")).Error().NotTo(HaveOccurred())
}

// lines waits until n pods run, and returns what each said first, by id.
func (u *use) lines(ctx context.Context, n int) map[string]string {
	GinkgoHelper()
	lines := map[string]string{}
	Eventually(func(g Gomega, ctx context.Context) {
		pods, err := u.running(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(n))
		for id, pod := range pods {
			if _, known := u.said[pod]; !known {
				log, err := u.kubectl(ctx, "logs", pod)
				g.Expect(err).NotTo(HaveOccurred())
				line, _, ended := strings.Cut(log, "\n")
				g.Expect(ended).To(BeTrue(), "%s has said %q", pod, log)
				if u.said == nil {
					u.said = map[string]string{}
				}
				u.said[pod] = line
			}
			lines[id] = u.said[pod]
		}
	}).WithContext(ctx).Should(Succeed())
	return lines
}

// endpoints returns the pods to which a Service leads.
func (u *use) endpoints(ctx context.Context, service string) (pods []string, err error) {
	slices, err := client.DiscoveryV1().EndpointSlices(u.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	for i := range slices.Items {
		for _, e := range slices.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				pods = append(pods, e.TargetRef.Name)
			}
		}
	}
	return pods, nil
}

// loadBusybox puts the image of the manifests onto the nodes, which have no registry.
func loadBusybox(ctx context.Context) {
	GinkgoHelper()
	program, err := os.ReadFile("/bin/busybox")
	Expect(err).NotTo(HaveOccurred(), "install Debian's busybox-static")
	dir, names := GinkgoT().TempDir(), []string{"busybox", "sh", "cat", "sleep"}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
		Expect(os.WriteFile(names[i], program, 0o755)).To(Succeed()) //nolint:gosec // a program
	}
	load(ctx, "library/busybox:1.37", names...)
}

// load calls CLUSTER_LOAD.
func load(ctx context.Context, image string, files ...string) {
	GinkgoHelper()
	Expect(os.Getenv("CLUSTER_LOAD")).NotTo(BeEmpty(), "set CLUSTER_LOAD to the command that loads an image: see hack/e2e")
	out, err := exec.CommandContext(ctx, os.Getenv("CLUSTER_LOAD"), append([]string{image}, files...)...).CombinedOutput() //nolint:gosec // see hack/e2e
	Expect(err).NotTo(HaveOccurred(), string(out))
}
