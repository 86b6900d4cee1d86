package inject

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// assigned is a workload whose pods ask the controller for their ids.
var assigned = with(`idalloc.dev/inject: "true"`, "idalloc.dev/assign: controller") //nolint:gochecknoglobals // a text

func assignedWith(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(assigned) }

// annotatedWith is such a workload with annotations in its template, and with pairs of texts replaced.
func annotatedWith(pairs string, oldnew ...string) string {
	return assignedWith(append(oldnew, "assign: controller}", "assign: controller}\n      annotations: {"+pairs+"}")...)
}

// filesOfAnID is the volume that a template without a machine number has.
const filesOfAnID = `
      volumes:
        - {name: data, emptyDir: {}}
        - name: idalloc
          downwardAPI:
            items:
              - {path: identity.json, fieldRef: {fieldPath: "metadata.annotations['idalloc.dev/identity']"}}
              - {path: id, fieldRef: {fieldPath: "metadata.annotations['idalloc.dev/id']"}}
              - {path: count, fieldRef: {fieldPath: "metadata.annotations['idalloc.dev/count']"}}`

// watcher is the container that restarts the others, without its rule.
const watcher = `
      initContainers:
        - name: idalloc-countwatch
          image: example.com/watcher
          restartPolicy: Always`

// asController acts by the account of idalloc-controller, which RBAC lets do everything here.
func asController() (kubernetes.Interface, *store.Store) {
	GinkgoHelper()
	config := rest.CopyConfig(plane.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:idalloc-system:idalloc-controller", Groups: []string{"system:masters"}}
	c, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	s, err := store.New(config, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	return c, s
}

var _ = Describe("the policies of the controller and kubectl idalloc inject", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		Eventually(func(g Gomega) {
			pod, err := create(ctx, namespace, templateOf(assigned))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Spec.SchedulingGates).To(HaveLen(1))
			_, err = create(ctx, namespace, templateOf(assignedWith("assign: controller", "assign: perhaps")))
			g.Expect(err).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-")))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))

	DescribeTable("give the same pod", func(ctx SpecContext, workload string) {
		byPolicy, err := create(ctx, namespace, templateOf(workload))
		Expect(err).NotTo(HaveOccurred())
		result, workloads, err := inject.Stream(workload, inject.Options{By: inject.ByController})
		Expect(err).NotTo(HaveOccurred())
		Expect(workloads).To(HaveLen(1))
		byCommand, err := create(ctx, namespace, templateOf(result))
		Expect(err).NotTo(HaveOccurred())
		Expect(normal(byPolicy)).To(BeComparableTo(normal(byCommand)))
		Expect(byPolicy.Spec.SchedulingGates).To(Equal([]corev1.PodSchedulingGate{{Name: "idalloc.dev/id"}}))
		for _, c := range append(byPolicy.Spec.InitContainers, byPolicy.Spec.Containers...) {
			Expect(c.Env[0].ValueFrom.FieldRef.FieldPath).To(Equal("metadata.annotations['idalloc.dev/id']"), c.Name)
			Expect(c.Env[1]).To(And(HaveField("Name", "IDALLOC_COUNT"), HaveField("ValueFrom.FieldRef.FieldPath", "metadata.annotations['idalloc.dev/start-count']")), c.Name)
			Expect(sees(c)).To(BeTrue(), c.Name)
			token := ContainElement(HaveField("Name", HavePrefix("kube-api-access-")))
			if c.Name == assignment.CountWatcher {
				token = Not(token)
			}
			Expect(c.VolumeMounts).To(token, c.Name)
		}
	},
		Entry("with the label alone", assigned),
		Entry("with several containers, which have lists of their own", assignedWith(oneContainer, twoContainers)),
		Entry("with a count that restarts", annotatedWith("idalloc.dev/on-count-change: restart")),
		Entry("with a count that restarts init containers", annotatedWith("idalloc.dev/on-count-change: restart", oneContainer, twoContainers)),
		Entry("with a machine number", annotatedWith(`idalloc.dev/first-number: "1024"`, oneContainer, twoContainers)),
		Entry("with a machine number and the files of an id", annotatedWith(`idalloc.dev/first-number: "1024"`, oneContainer, oneContainer+filesOfAnID)),
	)

	It("keep a gate of another controller", func(ctx SpecContext) {
		pod, err := create(ctx, namespace, templateOf(assignedWith("spec:\n      containers", "spec:\n      schedulingGates: [{name: example.com/quota}]\n      containers")))
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.Spec.SchedulingGates).To(Equal([]corev1.PodSchedulingGate{{Name: "example.com/quota"}, {Name: "idalloc.dev/id"}}))
	})

	It("refuse a pod that a DaemonSet makes, and one whose template has an id", func(ctx SpecContext) {
		_, err := create(ctx, namespace, templateOf(assigned), metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", UID: aUID, Controller: new(true)})
		const sentence = "each new node would change the count of all pods of a DaemonSet"
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		_, _, err = inject.Stream(assignedWith("kind: Deployment", "kind: DaemonSet"), inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		_, err = create(ctx, namespace, templateOf(assigned), metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "x", UID: aUID, Controller: new(true)})
		Expect(err).To(MatchError(ContainSubstring("a static pod cannot wait behind a scheduling gate")))
		template := templateOf(assigned)
		template.Annotations = map[string]string{"idalloc.dev/id": "0"}
		_, err = create(ctx, namespace, template)
		Expect(err).To(MatchError(ContainSubstring("only idalloc-controller writes idalloc.dev/id")))
	})

	DescribeTable("refuse", func(ctx SpecContext, workload, sentence string) {
		_, err := create(ctx, namespace, templateOf(workload))
		Expect(err).To(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-"), ContainSubstring(sentence))))
		_, _, err = inject.Stream(workload, inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
	},
		Entry("another value of the label", assignedWith("assign: controller", "assign: sidecar"), `label idalloc.dev/assign is "sidecar": use "controller" or "agent"`),
		Entry("both labels", assignedWith("assign: controller", "assign: controller, idalloc.dev/inject: \"true\""), "for the sidecar and for an id of the controller"),
		Entry("a node by name", assignedWith("spec:\n      containers", "spec:\n      nodeName: node1\n      containers"), "a pod with nodeName cannot wait behind a scheduling gate"),
		Entry("no grace period", assignedWith("spec:\n      containers", "spec:\n      terminationGracePeriodSeconds: 0\n      containers"), "removes a pod before its program has ended"),
		Entry("a container that runs idalloc", assignedWith("image: example.com/program", "image: example.com/program, command: [/bin/idalloc, run, --, x]"), "container main runs idalloc itself"),
		Entry("a variable of that name", assignedWith("image: example.com/program", "image: example.com/program, env: [{name: IDALLOC_ID, value: x}]"), "container main sets IDALLOC_ID itself"),
		Entry("a mount at that path", assignedWith(oneContainer, "containers:\n        - {name: main, image: example.com/program, volumeMounts: [{name: x, mountPath: /var/run/idalloc}]}\n      volumes: [{name: x, emptyDir: {}}]"), "container main mounts a volume of its own at /var/run/idalloc"),
		Entry("a volume of that name", assignedWith(oneContainer, oneContainer+"\n      volumes: [{name: idalloc, emptyDir: {}}]"), "the pod has a volume idalloc of its own"),
		Entry("another value of on-count-change", annotatedWith("idalloc.dev/on-count-change: reload"), `annotation idalloc.dev/on-count-change is "reload": use "keep", "restart" or "replace"`),
		Entry("an empty value of on-count-change", annotatedWith(`idalloc.dev/on-count-change: ""`), `annotation idalloc.dev/on-count-change is "": use "keep", "restart" or "replace"`),
		Entry("a watcher that nothing asks for", assignedWith(oneContainer, oneContainer+watcher), "container idalloc-countwatch would restart all pods at once"),
		Entry("a watcher of a pod that is replaced", annotatedWith("idalloc.dev/on-count-change: replace", oneContainer, oneContainer+watcher), "container idalloc-countwatch would restart all pods at once"),
		Entry("a variable of the number's name", annotatedWith(`idalloc.dev/first-number: "1"`, "image: example.com/program", "image: example.com/program, env: [{name: IDALLOC_NUMBER, value: x}]"), "container main sets IDALLOC_NUMBER itself"),
		Entry("a first number of 0", annotatedWith(`idalloc.dev/first-number: "0"`), `annotation idalloc.dev/first-number is "0": use a number from 1 to 999999999`),
		Entry("a first number that is too large", annotatedWith(`idalloc.dev/first-number: "1000000000"`), `annotation idalloc.dev/first-number is "1000000000": use a number from 1 to 999999999`),
	)

	It("refuse to replace the pods of a Job", func(ctx SpecContext) {
		const sentence = "a Job counts a pod that is evicted as failed"
		replaced := annotatedWith("idalloc.dev/on-count-change: replace")
		_, err := create(ctx, namespace, templateOf(replaced), metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "x", UID: aUID, Controller: new(true)})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		_, _, err = inject.Stream(strings.Replace(replaced, "apiVersion: apps/v1\nkind: Deployment", "apiVersion: batch/v1\nkind: Job", 1), inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
	})

	DescribeTable("refuse a pod that restarts with a watcher that cannot", func(ctx SpecContext, rule string) {
		_, err := create(ctx, namespace, templateOf(annotatedWith("idalloc.dev/on-count-change: restart", oneContainer, oneContainer+watcher+rule)))
		Expect(err).To(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-assign'"), ContainSubstring("no container idalloc-countwatch whose rule restarts all containers"))))
	},
		Entry("because it has no rule", ""),
		Entry("because its rule restarts it alone", "\n          restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]"),
		Entry("because its rule is for another code", "\n          restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [41]}}]"),
		Entry("because its rule is for all codes but that", "\n          restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: NotIn, values: [42]}}]"),
	)

	It("let the controller alone give the pod its id, and the controller nothing else", func(ctx SpecContext) {
		name := stored(ctx, namespace, assigned).Name
		patch := func(c kubernetes.Interface, patch string, subresources ...string) error {
			_, err := c.CoreV1().Pods(namespace).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: assignment.FieldManager}, subresources...)
			return err
		}
		const (
			ungate  = `{"op":"remove","path":"/spec/schedulingGates"}`
			count   = `{"op":"add","path":"/metadata/annotations","value":{"idalloc.dev/start-count":"5"}}`
			turn    = `{"op":"add","path":"/metadata/annotations","value":{"idalloc.dev/turn":"1 a"}}`
			id      = `{"op":"add","path":"/metadata/annotations","value":{"idalloc.dev/id":"0","idalloc.dev/start-count":"1"}}`
			label   = `{"op":"add","path":"/metadata/labels/idalloc.dev~1instance-id","value":"0"}`
			unmark  = `{"op":"remove","path":"/metadata/labels/idalloc.dev~1assign"}`
			foreign = `{"op":"add","path":"/metadata/labels/example.com~1x","value":"0"}`
			image   = `{"op":"replace","path":"/spec/containers/0/image","value":"example.com/other"}`
			node    = `{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}`
		)
		for _, write := range []string{count, turn, id, label, unmark} {
			Expect(patch(client, "["+write+"]")).To(MatchError(ContainSubstring("only idalloc-controller changes idalloc.dev/")), write)
			Expect(patch(client, "["+write+"]", "status")).To(MatchError(ContainSubstring("only idalloc-controller changes idalloc.dev/")), write)
		}
		Expect(patch(client, "["+ungate+"]")).To(MatchError(ContainSubstring("only idalloc-controller removes the scheduling gate")))
		Expect(patch(client, "["+foreign+"]")).To(Succeed())

		controller, s := asController()
		Expect(patch(controller, "["+id+","+label+","+ungate+"]")).To(Succeed())
		Expect(patch(controller, "["+turn+"]")).To(Succeed())
		Expect(patch(controller, "["+foreign+"]")).To(MatchError(ContainSubstring("may only change keys of idalloc, and not example.com/x")))
		Expect(patch(controller, "["+unmark+"]")).To(MatchError(ContainSubstring("may only change keys of idalloc, and not idalloc.dev/assign")))
		for _, write := range []string{image, node} {
			Expect(patch(controller, "["+write+","+ungate+"]")).To(MatchError(ContainSubstring("may not change the spec of pods")), write)
		}
		Expect(patch(controller, "["+id+"]", "status")).To(MatchError(ContainSubstring("only updates workloads and pods")))
		dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: assignment.FieldManager}
		_, err := controller.AppsV1().ReplicaSets(namespace).Patch(ctx, "worker", types.MergePatchType, []byte(`{"metadata":{"annotations":{"idalloc.dev/assignment":"{}"}}}`), dry)
		Expect(err).NotTo(HaveOccurred())
		_, err = controller.AppsV1().ReplicaSets(namespace).Patch(ctx, "worker", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), dry)
		Expect(err).To(MatchError(ContainSubstring("may not change the spec of replicasets")))
		_, err = controller.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).To(MatchError(ContainSubstring("only updates workloads and pods, removes pods")))
		other, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
			metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		remove := func(name string, grace *int64) error {
			return controller.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: grace})
		}
		evict := func(grace *int64) error {
			o := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: grace}
			return controller.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, DeleteOptions: &o})
		}
		Expect(remove(other.Name, nil)).To(MatchError(ContainSubstring("has no label idalloc.dev/assign")))
		Expect(remove(name, nil)).To(Succeed())
		Expect(evict(nil)).To(Succeed())
		Expect(evict(new(int64))).To(MatchError(ContainSubstring("may not set the grace period")))

		meta, err := s.GetPod(ctx, namespace, name)
		Expect(err).NotTo(HaveOccurred())
		lock := receipt.Receipt{UID: string(meta.UID), Owner: "ReplicaSet/worker", State: receipt.Locks, Write: "1"}
		begun := lock
		begun.Begun, begun.Write = true, "2"
		_, err = s.Dry().Begin(ctx, meta, begun, map[string]string{receipt.IDKey: "0", receipt.CountKey: "1", receipt.StartCountKey: "1", receipt.IdentityKey: "{}"}, true)
		Expect(err).NotTo(HaveOccurred())
		meta, err = s.Take(ctx, meta, lock) // so the dry run changed nothing
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Begin(ctx, meta, begun, map[string]string{receipt.IDKey: "0", receipt.CountKey: "1", receipt.StartCountKey: "1", receipt.IdentityKey: "{}"}, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})).To(And(
			HaveField("Spec.SchedulingGates", BeEmpty()), HaveField("Annotations", HaveKeyWithValue(receipt.IDKey, "0")),
			HaveField("Labels", HaveKeyWithValue(receipt.IDLabel, "0"))))

		bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
		Expect(client.CoreV1().Pods(namespace).Bind(ctx, bind, metav1.CreateOptions{})).To(Succeed())
		Expect(remove(name, nil)).To(Succeed())
		Expect(remove(name, new(int64))).To(MatchError(ContainSubstring("may not set the grace period")))
	})
})
