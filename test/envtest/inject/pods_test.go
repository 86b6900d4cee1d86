package inject

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
)

// aUID is the UID of what makes a pod.
const aUID = "c0ffee"

// plain is a workload that has nothing of idalloc but the label.
const plain = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  selector: {matchLabels: {app: worker}}
  template:
    metadata:
      labels: {app: worker, idalloc.dev/inject: "true"}
    spec:
      containers:
        - {name: main, image: example.com/program}
`

// with returns the plain workload with pairs of texts replaced.
func with(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(plain) }

// annotated returns the plain workload with annotations in its template.
func annotated(pairs string) string {
	return with(`idalloc.dev/inject: "true"}`, "idalloc.dev/inject: \"true\"}\n      annotations: {"+pairs+"}")
}

// templateOf returns the pod template of a workload.
func templateOf(workload string) *corev1.PodTemplateSpec {
	GinkgoHelper()
	var object struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	Expect(yaml.Unmarshal([]byte(workload), &object)).To(Succeed())
	return &object.Spec.Template
}

// controlled is what a ReplicaSet writes on its pods.
func controlled() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "worker-5d9", UID: aUID, Controller: new(true)}}
}

// create returns the pod that the API server makes of a template, as a controller would create it. Nothing is stored.
func create(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, owners ...metav1.OwnerReference) (*corev1.Pod, error) {
	if owners == nil {
		owners = controlled()
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "worker-5d9-", Labels: template.Labels, Annotations: template.Annotations, OwnerReferences: owners},
		Spec:       *template.Spec.DeepCopy(),
	}
	return client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
}

// normal returns what both ways have to agree on. The API server mounts its own token after what a template has, and before what the
// policy adds, and gives its volume a random name; so the order of volumes and mounts does not count.
func normal(pod *corev1.Pod) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
	const api = "kube-api-access-"
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; strings.HasPrefix(v.Name, api) {
			v.Name = api
		}
	}
	slices.SortFunc(p.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			for i := range c.VolumeMounts {
				if m := &c.VolumeMounts[i]; strings.HasPrefix(m.Name, api) {
					m.Name = api
				}
			}
			slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name+a.MountPath, b.Name+b.MountPath) })
			// The policy has the variables first, and the command behind those that do not refer to them.
			slices.SortStableFunc(c.Env, func(a, b corev1.EnvVar) int { return rank(a) - rank(b) })
		}
	}
	return p
}

func rank(e corev1.EnvVar) int {
	if i := slices.Index([]string{"IDALLOC_ID", "IDALLOC_COUNT", "IDALLOC_NUMBER"}, e.Name); i >= 0 {
		return i
	}
	return 3
}

func names(containers []corev1.Container) []string {
	all := make([]string, 0, len(containers))
	for _, c := range containers {
		all = append(all, c.Name)
	}
	return all
}

// sees tells whether a container has the directory of the id.
func sees(c corev1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == sidecarName })
}

const (
	sidecarName = "idalloc"                                       // also of its volume and of its account
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // where a token is, and none itself
)

// tokens returns the names of the containers that have a token.
func tokens(pod *corev1.Pod) []string {
	return names(slices.DeleteFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath })
	}))
}

const twoContainers = `containers:
        - name: main
          image: example.com/program
          env: [{name: A, value: b}]
          volumeMounts: [{name: data, mountPath: /data}]
        - {name: helper, image: example.com/helper}
      initContainers:
        - {name: fetch, image: example.com/fetch}
        - {name: prepare, image: example.com/prepare, volumeMounts: [{name: data, mountPath: /data}]}
        - {name: log, image: example.com/log, restartPolicy: Always}
      volumes: [{name: data, emptyDir: {}}]`

const oneContainer = `containers:
        - {name: main, image: example.com/program}`

var _ = Describe("the policy and kubectl idalloc inject", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx SpecContext) { namespace = newNamespace(ctx) }, NodeTimeout(patience))

	// both returns the pod that both ways make of a workload.
	both := func(ctx context.Context, workload string) *corev1.Pod {
		GinkgoHelper()
		byPolicy, err := create(ctx, namespace, templateOf(workload))
		Expect(err).NotTo(HaveOccurred())
		result, workloads, err := inject.Stream(workload, inject.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(workloads).To(HaveLen(1))
		byCommand, err := create(ctx, namespace, templateOf(result))
		Expect(err).NotTo(HaveOccurred())
		Expect(normal(byPolicy)).To(BeComparableTo(normal(byCommand)))
		Expect(byPolicy.Annotations).To(HaveKeyWithValue("idalloc.dev/injected", "true"))
		again, _, err := inject.Stream(result, inject.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(result), "idempotent")
		return byPolicy
	}

	DescribeTable("give the same pod", func(ctx SpecContext, workload string, check func(pod *corev1.Pod, sidecar corev1.Container)) {
		pod := both(ctx, workload)
		i := slices.Index(names(pod.Spec.InitContainers), sidecarName)
		Expect(i).To(BeNumerically(">=", 0))
		sidecar := pod.Spec.InitContainers[i]
		Expect(*sidecar.RestartPolicy).To(Equal(corev1.ContainerRestartPolicyAlways))
		check(pod, sidecar)
	},
		Entry("with the label alone", plain, func(pod *corev1.Pod, sidecar corev1.Container) {
			Expect(sidecar.Image).To(Equal("ghcr.io/idalloc/idalloc:v0.1.0"))
			Expect(sidecar.Args).To(Equal([]string{"watch"}))
			Expect(pod.Spec.ServiceAccountName).To(Equal(sidecarName))
			Expect(tokens(pod)).To(Equal([]string{sidecarName}))
			Expect(pod.Spec.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "IDALLOC_DIR", Value: "/var/run/idalloc"}, {Name: "IDALLOC_URL", Value: "http://127.0.0.1:8089"}}))
			Expect(sees(pod.Spec.Containers[0])).To(BeTrue())
		}),
		Entry("with several containers, which have lists of their own", with(oneContainer, twoContainers), func(pod *corev1.Pod, _ corev1.Container) {
			Expect(names(pod.Spec.InitContainers)).To(Equal([]string{"fetch", "prepare", "log", sidecarName}))
			Expect(tokens(pod)).To(Equal([]string{sidecarName}))
			for _, c := range pod.Spec.Containers {
				Expect(sees(c)).To(BeTrue(), c.Name)
			}
			for _, c := range pod.Spec.InitContainers[:3] {
				Expect(sees(c)).To(BeFalse(), c.Name)
			}
		}),
		Entry("with containers by name, one of which has to start after the sidecar",
			strings.Replace(annotated(`inject.idalloc.dev/containers: "prepare,helper"`), oneContainer, twoContainers, 1),
			func(pod *corev1.Pod, _ corev1.Container) {
				Expect(names(pod.Spec.InitContainers)).To(Equal([]string{"fetch", sidecarName, "prepare", "log"}))
				Expect(sees(pod.Spec.InitContainers[2])).To(BeTrue())
				Expect(sees(pod.Spec.Containers[0])).To(BeFalse())
				Expect(sees(pod.Spec.Containers[1])).To(BeTrue())
			}),
		Entry("with all options", annotated(`inject.idalloc.dev/image: "example.com/idalloc:v1", inject.idalloc.dev/dir: /ids, inject.idalloc.dev/drain: http,
        inject.idalloc.dev/partitions: "true", inject.idalloc.dev/fence-after: 30s, inject.idalloc.dev/fence-exec: /stop now, inject.idalloc.dev/service-account: other`),
			func(pod *corev1.Pod, sidecar corev1.Container) {
				Expect(sidecar.Image).To(Equal("example.com/idalloc:v1"))
				Expect(sidecar.Args).To(Equal([]string{"watch", "--dir=/ids", "--drain=http", "--partitions", "--fence-after=30s", "--fence-exec=/stop now"}))
				Expect(pod.Spec.ServiceAccountName).To(Equal("other"))
				Expect(pod.Spec.Containers[0].VolumeMounts[0].MountPath).To(Equal("/ids"))
			}),
		Entry("with an account of its own, which keeps its token", with("spec:\n      containers", "spec:\n      serviceAccountName: program\n      containers"),
			func(pod *corev1.Pod, _ corev1.Container) {
				Expect(pod.Spec.ServiceAccountName).To(Equal("program"))
				Expect(tokens(pod)).To(ConsistOf(sidecarName, "main"))
			}),
		Entry("with an account of its own and no token", with("spec:\n      containers", "spec:\n      serviceAccountName: program\n      automountServiceAccountToken: false\n      containers"),
			func(pod *corev1.Pod, _ corev1.Container) { Expect(tokens(pod)).To(Equal([]string{sidecarName})) }),
		Entry("with a token that the program asks for", with("spec:\n      containers", "spec:\n      automountServiceAccountToken: true\n      containers"),
			func(pod *corev1.Pod, _ corev1.Container) {
				Expect(pod.Spec.ServiceAccountName).To(Equal(sidecarName))
				Expect(tokens(pod)).To(ConsistOf(sidecarName, "main"))
			}),
		Entry("with resources of the sidecar's own", annotated("inject.idalloc.dev/requests: example.com/tokens=1, inject.idalloc.dev/limits: 'cpu=100m,memory=48Mi,example.com/tokens=1'"),
			func(_ *corev1.Pod, sidecar corev1.Container) {
				Expect(sidecar.Resources.Limits.Memory().String()).To(Equal("48Mi"))
				Expect(sidecar.Resources.Limits.Cpu().String()).To(Equal("100m"))
			}),
		Entry("with empty lists", with(oneContainer, "containers:\n        - {name: main, image: example.com/program, env: [], volumeMounts: []}\n      volumes: []\n      initContainers: []"),
			func(*corev1.Pod, corev1.Container) {}),
	)

	It("leave a pod without the label as it is", func(ctx SpecContext) {
		for _, workload := range []string{with(`, idalloc.dev/inject: "true"`, ""), with(`inject: "true"`, `inject: "false"`)} {
			pod, err := create(ctx, namespace, templateOf(workload))
			Expect(err).NotTo(HaveOccurred())
			Expect(pod.Spec.InitContainers).To(BeEmpty())
			result, workloads, err := inject.Stream(workload, inject.Options{})
			Expect(err).NotTo(HaveOccurred())
			Expect(workloads).To(BeEmpty())
			Expect(result).To(Equal(workload))
		}
	})

	It("keep to the limits of a namespace where the template says which", func(ctx SpecContext) {
		limited := newNamespace(ctx)
		_, err := client.CoreV1().LimitRanges(limited).Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				Max: corev1.ResourceList{"memory": resource.MustParse("48Mi")}, Default: corev1.ResourceList{"memory": resource.MustParse("32Mi")}}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().ResourceQuotas(limited).Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "cpu"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.cpu": resource.MustParse("2")}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		asks := func(annotations string) error {
			template := templateOf(annotated(annotations))
			template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			_, err := create(ctx, limited, template)
			return err
		}
		Expect(asks("")).To(MatchError(ContainSubstring("maximum memory usage per Container is 48Mi, but limit is 64Mi")))
		Eventually(asks).WithContext(ctx).WithArguments("inject.idalloc.dev/limits: memory=48Mi").
			Should(MatchError(ContainSubstring("must specify limits.cpu for: idalloc")))
		Expect(asks("inject.idalloc.dev/limits: 'cpu=100m,memory=48Mi'")).To(Succeed())
	})

	DescribeTable("refuse", func(ctx SpecContext, workload, sentence string) {
		_, err := create(ctx, namespace, templateOf(workload))
		Expect(err).To(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy 'idalloc-inject'"), ContainSubstring(sentence))))
		_, _, err = inject.Stream(workload, inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
	},
		Entry("a container of that name", with("name: main", "name: idalloc"), "the pod has a container idalloc of its own: rename it"),
		Entry("an init container of that name", with(oneContainer, oneContainer+"\n      initContainers: [{name: idalloc, image: example.com/x}]"), "the pod has a container idalloc of its own: rename it"),
		Entry("a volume of that name", with(oneContainer, oneContainer+"\n      volumes: [{name: idalloc-token, emptyDir: {}}]"), "the pod has a volume idalloc-token of its own: rename it"),
		Entry("a variable of that name", with("image: example.com/program", "image: example.com/program, env: [{name: IDALLOC_URL, value: x}]"), "container main sets IDALLOC_DIR or IDALLOC_URL itself"),
		Entry("another value of the label", with(`inject: "true"`, `inject: "yes"`), `label idalloc.dev/inject is "yes": use "true" or "false"`),
		Entry("an annotation that there is not", annotated("inject.idalloc.dev/dri: /ids"), "there is no annotation inject.idalloc.dev/dri"),
		Entry("a directory that is relative", annotated("inject.idalloc.dev/dir: ids"), `annotation inject.idalloc.dev/dir is "ids": use an absolute path`),
		Entry("a drain hook that there is not", annotated("inject.idalloc.dev/drain: exec"), `annotation inject.idalloc.dev/drain is "exec": use http`),
		Entry("a word for partitions", annotated(`inject.idalloc.dev/partitions: "64"`), `annotation inject.idalloc.dev/partitions is "64": use "true" or "false"`),
		Entry("a limit without a name", annotated("inject.idalloc.dev/limits: 48Mi"), `annotation inject.idalloc.dev/limits is "48Mi": use NAME=QUANTITY`),
		Entry("a container that runs idalloc", with("image: example.com/program", "image: example.com/program, command: [/bin/idalloc, run, --, x]"), "container main runs idalloc itself"),
		Entry("a container with idalloc's image", with("image: example.com/program", "image: 'example.com:5000/idalloc:v1', args: [watch]"), "container main runs idalloc itself"),
		Entry("a container that there is not", annotated("inject.idalloc.dev/containers: 'main,side'"), `names "side", which is no container of the pod`),
		Entry("a container with spaces", annotated("inject.idalloc.dev/containers: 'main, main'"), `names " main", which is no container of the pod`),
		Entry("a part of strict mode", annotated("inject.idalloc.dev/fence-after: 30s"), "work only together: set both"),
		Entry("a fence-after that is too short", annotated("inject.idalloc.dev/fence-after: 1s, inject.idalloc.dev/fence-exec: /stop"), `fence-after is "1s": use a duration from 3s to 1h`),
		Entry("a fence-after that is none", annotated("inject.idalloc.dev/fence-after: soon, inject.idalloc.dev/fence-exec: /stop"), `fence-after is "soon": use a duration from 3s to 1h`),
		Entry("an open quote", annotated(`inject.idalloc.dev/fence-after: 30s, inject.idalloc.dev/fence-exec: "/stop 'a b"`), `fence-exec is "/stop 'a b": `),
		Entry("too little memory", annotated("inject.idalloc.dev/requests: memory=8Mi, inject.idalloc.dev/limits: 'cpu=1,memory=10Mi'"), `limits is "cpu=1,memory=10Mi": the sidecar needs memory=24Mi or more`),
		Entry("no grace period", with(oneContainer, oneContainer+"\n      terminationGracePeriodSeconds: 0"), "terminationGracePeriodSeconds is 0"),
		Entry("two accounts", strings.Replace(annotated("inject.idalloc.dev/service-account: other"), "spec:\n      containers", "spec:\n      serviceAccountName: program\n      containers", 1),
			"the pod runs as program, and annotation inject.idalloc.dev/service-account says other: remove one of them"),
	)

	It("leave it to the API server to say that an account is missing", func(ctx SpecContext) {
		_, err := create(ctx, namespace, templateOf(annotated("inject.idalloc.dev/service-account: missing")))
		Expect(err).To(MatchError(ContainSubstring(`serviceaccount "missing" not found`)))
	})

	It("refuse a pod without a workload", func(ctx SpecContext) {
		const sentence = "a pod by itself has nothing to number it by"
		_, err := create(ctx, namespace, templateOf(plain), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: aUID})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		_, _, err = inject.Stream("apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {idalloc.dev/inject: \"true\"}}\nspec: {containers: [{name: main}]}", inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
	})

	It("refuse a workload of another kind", func(ctx SpecContext) {
		const sentence = "and not to those of apps/v1 DaemonSet: take label idalloc.dev/inject out of its template"
		_, err := create(ctx, namespace, templateOf(plain), metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", UID: aUID, Controller: new(true)})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
		_, _, err = inject.Stream(with("kind: Deployment", "kind: DaemonSet"), inject.Options{})
		Expect(err).To(MatchError(ContainSubstring(sentence)))
	})
})
