package minor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/envtest/specs"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// example is the Deployment of docs/controller.md.
func example() string {
	GinkgoHelper()
	page, err := os.ReadFile("../../../docs/controller.md")
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile("(?s)\n```yaml\n(apiVersion: apps/v1\n.*?)```\n").FindSubmatch(page)
	Expect(found).NotTo(BeNil())
	return string(found[1])
}

func parsed(text string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(yaml.UnmarshalStrict([]byte(text), d)).To(Succeed())
	return d
}

func space(ctx context.Context, rules ...rbacv1.PolicyRule) *suite.Namespace {
	GinkgoHelper()
	ns, err := env.NewNamespace(ctx, rules...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has a context of its own
		if CurrentSpecReport().Failed() {
			explained(ctx, ns)
		}
	})
	return ns
}

func patch(ctx context.Context, ns *suite.Namespace, text string) {
	GinkgoHelper()
	_, err := env.Client.AppsV1().Deployments(ns.Name).Patch(ctx, "worker", types.MergePatchType, []byte(text), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// numbered waits until n pods of this version have the ids 0 to n-1 and know the count, and no other pod is left. It returns the pods by id.
func numbered(ctx context.Context, ns *suite.Namespace, n int, version string) map[string]string {
	GinkgoHelper()
	ids := map[string]string{}
	Eventually(func(g Gomega, ctx context.Context) {
		all, err := ns.Pods(ctx, "worker")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(all)).To(Equal(n)) //nolint:ginkgolinter // a failure would print all pods
		clear(ids)
		for _, pod := range all {
			g.Expect(suite.Ready(&pod)).To(BeTrue(), pod.Name)
			g.Expect(pod.Annotations["version"]).To(Equal(version))
			g.Expect(pod.Annotations).To(HaveKeyWithValue(receipt.CountKey, strconv.Itoa(n)))
			ids[pod.Annotations[receipt.IDKey]] = pod.Name
		}
		for id := range n {
			g.Expect(ids).To(HaveKey(strconv.Itoa(id)))
		}
	}).WithContext(ctx).Should(Succeed())
	return ids
}

// said expects that each container has seen its pod's id, and this count when it started.
func said(ctx context.Context, ns *suite.Namespace, ids map[string]string, n int) {
	GinkgoHelper()
	for id, pod := range ids {
		Eventually(func() (string, error) {
			log, err := os.ReadFile(env.Node.Logs(ns.Name, pod, "worker"))
			return string(log), err
		}).WithContext(ctx).Should(ContainSubstring(fmt.Sprintf("I am %s of %d\n", id, n)))
	}
}

// explained writes what the pods wait for, and what the controller logged.
func explained(ctx context.Context, ns *suite.Namespace) {
	GinkgoHelper()
	AddReportEntry("pods", prints(ctx, filepath.Join(env.ControlPlane.Assets(), "kubectl"), "get", "replicasets,pods", "-n", ns.Name, "-o", "wide", "--show-labels"))
	logs, err := filepath.Glob(env.Node.Logs(release, "*", "controller"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range logs {
		text, err := os.ReadFile(path) //nolint:gosec // below the node's directory
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(path, string(text))
	}
}

// completed waits until the API server completes pods in this way, and refuses pods.
func completed(ctx context.Context, byWebhook bool) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(reach(ctx)).To(Equal(byWebhook))
		for _, label := range []string{receipt.AssignLabel, inject.Label} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "probe", Labels: map[string]string{label: map[string]string{receipt.AssignLabel: receipt.ByController, inject.Label: "true"}[label]},
					Annotations:     map[string]string{"inject.idalloc.dev/service-account": "default"},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "probe", UID: "c0ffee", Controller: new(true)}},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}},
			}
			o, pods := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, env.Client.CoreV1().Pods(release)
			is, err := pods.Create(ctx, pod, o)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(is.Spec.Volumes).To(ContainElement(HaveField("Name", "idalloc")))
			pod.Labels[label] = "perhaps"
			_, err = pods.Create(ctx, pod, o)
			g.Expect(err).To(MatchError(ContainSubstring(`is "perhaps": use "`)))
		}
	}).WithContext(ctx).Should(Succeed())
}

// lives has pods of the page's example through a scale and a rolling update with maxUnavailable 0.
func lives(ctx context.Context, text string) {
	GinkgoHelper()
	ns, d := space(ctx), parsed(text)
	d.Spec.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(0))}}
	Expect(ns.Create(ctx, d)).To(Succeed())
	before := numbered(ctx, ns, 3, "")
	said(ctx, ns, before, 3)
	By("a scale")
	Expect(ns.Scale(ctx, kinds.Deployment, "worker", 4)).To(Succeed())
	after := numbered(ctx, ns, 4, "")
	for id, pod := range before {
		Expect(after).To(HaveKeyWithValue(id, pod))
	}
	By("a container that restarts in place")
	Expect(env.Node.Signal(ns.Name, before["0"], "worker", syscall.SIGKILL)).To(Succeed())
	said(ctx, ns, map[string]string{"0": before["0"]}, 4)
	By("a rolling update")
	patch(ctx, ns, `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	said(ctx, ns, numbered(ctx, ns, 4, "2"), 4)
	verified(ctx, ns.Name)
}

var _ = Describe("on this version of Kubernetes", Ordered, func() {
	It("the table says what there is", func(ctx SpecContext) {
		o, plain := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}
		resources, err := env.Client.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
		Expect(err).NotTo(HaveOccurred())
		policies := ContainElement(HaveField("Name", "mutatingadmissionpolicies"))
		Expect(policies.Match(resources.APIResources)).To(Equal(is.MutatingPolicies), "mutating policies")

		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Spec: plain}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "x", Env: []corev1.EnvVar{{
			Name: "A", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "a.env", Key: "A"}},
		}}}}
		made, err := env.Client.CoreV1().Pods(release).Create(ctx, pod, o)
		Expect(err == nil && made.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef != nil).To(Equal(is.EnvFiles), "variables from files: %v", err)

		set := suite.StatefulSet("sets", 3, &plain)
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromInt32(2))}
		stored, err := env.Client.AppsV1().StatefulSets(release).Create(ctx, set, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil).To(Equal(is.MaxUnavailable), "maxUnavailable of StatefulSets")
	})

	It("the chart installs a webhook, and the page's example has ids", func(ctx SpecContext) {
		way := "auto"
		if is.MutatingPolicies {
			way = "webhook"
		}
		install(ctx, way)
		completed(ctx, true)
		Expect(tested(ctx)).To(And(ContainSubstring("mutating policy idalloc-assign: in force."),
			ContainSubstring("mutating policy idalloc-inject: installed. the webhook "+hook+" does it")))
		lives(ctx, example())
	})

	It("the chart is upgraded to the policies, and the page's example has ids", func(ctx SpecContext) {
		if !is.MutatingPolicies {
			Skip("Kubernetes " + is.Name() + " has no mutating policies")
		}
		install(ctx, "auto")
		completed(ctx, false)
		Expect(tested(ctx)).To(And(ContainSubstring("mutating policy idalloc-assign: in force."), ContainSubstring("mutating policy idalloc-inject: installed.")))
		lives(ctx, example())
	})

	It("kubectl idalloc inject completes the page's example", func(ctx SpecContext) {
		text, workloads, err := inject.Stream(example(), inject.Options{By: inject.ByController})
		Expect(err).NotTo(HaveOccurred())
		Expect(workloads).To(HaveLen(1))
		// What the policy or the webhook would add is there before the API server sees it.
		spec := parsed(text).Spec.Template.Spec
		Expect(spec.SchedulingGates).To(HaveExactElements(HaveField("Name", "idalloc.dev/id")))
		Expect(spec.Volumes).To(ContainElement(HaveField("Name", "idalloc")))
		Expect(spec.Containers).To(HaveExactElements(And(
			HaveField("Env", ContainElements(HaveField("Name", "IDALLOC_ID"), HaveField("Name", "IDALLOC_COUNT"))),
			HaveField("VolumeMounts", ContainElement(HaveField("Name", "idalloc"))))))
		lives(ctx, text)
	})

	It("agents divide partitions, and divide them again after a scale", func(ctx SpecContext) {
		ns := space(ctx, specs.Manifest[*rbacv1.Role]("config/agent/role.yaml").Rules...)
		d := suite.Deployment("worker", 2, wrapped("--partitions"))
		d.Spec.Template.Labels[receipt.AssignLabel] = receipt.ByAgent
		d.Annotations = map[string]string{assignment.PartitionCountKey: "8"}
		Expect(ns.Create(ctx, d)).To(Succeed())
		for _, n := range []int{2, 3} {
			Expect(ns.Scale(ctx, kinds.Deployment, "worker", int32(n))).To(Succeed())
			Eventually(func(g Gomega, ctx context.Context) {
				table := prints(ctx, env.Binary, "get", "Deployment/worker", "-n", ns.Name, "--partitions")
				owned := map[string]bool{}
				for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
					g.Expect(line).To(ContainSubstring("worker-"), table)
					owned[strings.Fields(line)[1]] = true
				}
				g.Expect(owned).To(HaveLen(n), table)
			}).WithContext(ctx).Should(Succeed())
			verified(ctx, ns.Name)
		}
	})

	It("strict mode holds a Lease for each id", func(ctx SpecContext) {
		rules := specs.Manifest[*rbacv1.Role]("config/base/role.yaml").Rules
		all := suite.StrictRules()
		ns := space(ctx, append(rules, all[len(all)-1])...)
		Expect(ns.Create(ctx, suite.Deployment("worker", 2, wrapped("--fence-after=30s")))).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) {
			pods, err := ns.ReadyPods(ctx, "worker")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(2))
			leases, err := env.Client.CoordinationV1().Leases(ns.Name).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(leases.Items).To(HaveLen(2))
		}).WithContext(ctx).Should(Succeed())
		verified(ctx, ns.Name)
	})

	It("check finds everything in order", func(ctx SpecContext) {
		out := prints(ctx, controller, "check", "--namespace", release)
		Expect(out).To(And(HavePrefix("Kubernetes: in force. "+server), ContainSubstring("mutating policy idalloc-assign: in force.")))
	})
})

// wrapped is a pod whose program runs under idalloc run.
func wrapped(flag string) *corev1.PodSpec {
	c := suite.Container("worker", env.Binary, "run", "--http-address", "$(POD_IP):8089", flag, "--", "/bin/sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait")
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8089)}}}
	return suite.PodSpec(c)
}
