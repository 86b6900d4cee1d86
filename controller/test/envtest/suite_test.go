package envtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	options "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/idalloc/idalloc/controller/internal/reconciler"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/envtest/controlplane"
	"github.com/idalloc/idalloc/test/envtest/specs"
)

//nolint:gochecknoglobals // Ginkgo's specs share what BeforeSuite made
var (
	plane  *controlplane.ControlPlane
	config *rest.Config
	client kubernetes.Interface
)

func TestController(t *testing.T) { specs.Run(t, "controller", 2*time.Minute, 5*time.Minute) }

var _ = BeforeSuite(func(ctx SpecContext) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	plane, config = cp, rest.CopyConfig(cp.Config())
	config.QPS = -1
	client, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
})

// control runs a controller until the spec ends.
func control(namespace string) {
	GinkgoHelper()
	controlAt(namespace, clock.RealClock{})
}

func controlAt(namespace string, clk clock.Clock, named ...string) {
	GinkgoHelper()
	http, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	Expect(err).NotTo(HaveOccurred())
	known, missing, err := kinds.BuiltIn().Find(mapper, named...)
	Expect(err).NotTo(HaveOccurred())
	var only []string
	if namespace != "" {
		only = []string{namespace}
	}
	caches, err := reconciler.CacheOptions(only, known)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme.Scheme, Logger: GinkgoLogr, Cache: caches, Metrics: server.Options{BindAddress: "0"}, Controller: options.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	Expect(reconciler.Setup(ctx, mgr, config, known, missing, nil, prometheus.NewRegistry(), clk, GinkgoLogr)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
}

// newNamespace returns a namespace in which pods can be made.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "central-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	return ns.Name
}

// template is a pod template whose pods wait for the controller.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": worker, receipt.AssignLabel: receipt.ByController}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: receipt.Gate}},
			Containers: []corev1.Container{{Name: "main", Image: "none", Env: []corev1.EnvVar{{Name: "IDALLOC_COUNT", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + receipt.StartCountKey + "']"},
			}}}}},
		},
	}
}

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: worker}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": worker}}, Template: template(),
	}}
}

func create(ctx context.Context, namespace string, d *appsv1.Deployment) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func patch(ctx context.Context, namespace, text string) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(namespace).Patch(ctx, worker, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// pods returns the workload's pods.
func pods(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + worker})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// running returns a namespace with a controller, and with a Deployment whose n pods all run.
func running(ctx context.Context, n int32) (namespace string) {
	GinkgoHelper()
	namespace = newNamespace(ctx)
	control(namespace) //nolint:contextcheck // it ends with the spec
	kubelet(namespace) //nolint:contextcheck // the same
	create(ctx, namespace, deployment(n))
	rolled(ctx, namespace, "", int(n))
	return namespace
}

// begun returns the ids of the pods whose programs may run, and checks what each of them is told.
func begun(ctx context.Context, namespace string, count int) (ids []int) {
	GinkgoHelper()
	for _, pod := range pods(ctx, namespace) {
		text, there := pod.Annotations[receipt.IdentityKey]
		Expect(there).To(Equal(len(pod.Spec.SchedulingGates) == 0), "pod %s has its gate or its id", pod.Name)
		if !there {
			continue
		}
		var is identity.Identity
		Expect(is.UnmarshalJSON([]byte(text))).To(Succeed())
		r, err := receipt.Of(&pod, is.Owner.String())
		Expect(err).NotTo(HaveOccurred())
		Expect(r.LocksSlot(is.ID)).To(BeTrue(), "pod %s locks %d", pod.Name, is.ID)
		Expect(pod.Annotations[receipt.IDKey]).To(Equal(strconv.Itoa(is.ID)))
		Expect(is.Token).To(BeNumerically(">", 0))
		Expect(pod.Annotations[receipt.StartCountKey]).To(Equal(pod.Annotations[receipt.CountKey]), "pod %s", pod.Name)
		if is.Count == count && pod.Annotations[receipt.CountKey] == strconv.Itoa(count) {
			ids = append(ids, is.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// haveIDs waits until n pods run under the ids 0 to n-1 and know that there are n.
func haveIDs(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	Eventually(func(ctx context.Context) []int { return begun(ctx, namespace, n) }).WithContext(ctx).Should(Equal(want))
}

// kubelet makes each pod without a gate Ready, and says if two have one id, until the spec ends.
func kubelet(namespace string) { DeferCleanup(kubeletUntil(context.Background(), namespace)) }

// kubeletUntil does so until stop is called.
func kubeletUntil(ctx context.Context, namespace string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		tick := time.Tick(20 * time.Millisecond)
		for {
			if err := makeReady(ctx, namespace); err != nil && ctx.Err() == nil {
				Fail(err.Error())
			}
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func makeReady(ctx context.Context, namespace string) error {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + worker})
	if err != nil {
		return err
	}
	holders := map[string]string{}
	for _, pod := range list.Items {
		if len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		id := pod.Annotations[receipt.IDKey]
		if holders[id] != "" {
			return fmt.Errorf("%s and %s run under id %s", pod.Name, holders[id], id)
		}
		holders[id] = pod.Name
		if pod.Status.Phase == corev1.PodRunning || pod.Annotations["broken"] != "" {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		_, _ = client.CoreV1().Pods(namespace).UpdateStatus(ctx, &pod, metav1.UpdateOptions{}) // the next round finds what failed
	}
	return nil
}
