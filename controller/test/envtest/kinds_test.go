package envtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// custom is a kind with the subresource scale, and how its controller makes pods.
type custom struct {
	group, version, kind, resource string
	makes                          func(ctx context.Context, owner *unstructured.Unstructured) error
}

func (c custom) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: c.resource}
}

func (c custom) name() string { return c.resource + "." + c.group }

// The two have group, kind and paths of Argo Rollouts and of OpenKruise. What makes their pods is the test's.
var _ = Describe("a kind with the subresource scale that --kind names", func() {
	for _, c := range []custom{
		{"argoproj.io", "v1alpha1", "Rollout", "rollouts", makeSets},
		{"apps.kruise.io", "v1alpha1", "CloneSet", "clonesets", makePods},
		{"apps.kruise.io", "v1alpha1", "StatefulSet", "statefulsets", makePods},
	} {
		It("gives ids to the pods of a "+c.kind+", and follows its count", func(ctx SpecContext) {
			c.install(ctx)
			ns := newNamespace(ctx)
			c.operate(ns)
			controlAt(ns, clock.RealClock{}, c.name())
			kubelet(ns)
			c.create(ctx, ns, 3)
			haveIDs(ctx, ns, 3)
			c.explained(ctx, ns)
			c.verified(ctx, ns)
			c.patch(ctx, ns, "", `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
			Eventually(func(ctx context.Context) (versions []string) {
				for _, pod := range pods(ctx, ns) {
					versions = append(versions, pod.Annotations["version"])
				}
				return versions
			}).WithContext(ctx).Should(HaveExactElements("2", "2", "2"))
			haveIDs(ctx, ns, 3)
			c.patch(ctx, ns, "scale", `{"spec":{"replicas":5}}`)
			haveIDs(ctx, ns, 5)
			c.patch(ctx, ns, "scale", `{"spec":{"replicas":2}}`)
			haveIDs(ctx, ns, 2)
			Expect(events(ctx, ns, "PodRemoved")).To(BeEmpty())
		})
	}

	It("is an error at the pod if it is not named, and never counts by the ReplicaSet below", func(ctx SpecContext) {
		c := custom{"argoproj.io", "v1alpha1", "Rollout", "rollouts", makeSets}
		c.install(ctx)
		ns := newNamespace(ctx)
		c.operate(ns)
		control(ns)
		c.create(ctx, ns, 1)
		hears(ctx, ns, "OwnerUnknown").Should(ContainElement(HaveField("Message", And(ContainSubstring("Rollout/"+worker), ContainSubstring("--kind")))))
		Expect(begun(ctx, ns, 1)).To(BeEmpty())
	})
})

// explained expects that kubectl idalloc explain finds the owner of a pod if it is told of the kind.
func (c custom) explained(ctx context.Context, ns string) {
	GinkgoHelper()
	s, err := store.New(config, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	pod := pods(ctx, ns)[0].Name
	Expect(inspect.Explain(ctx, s, ns, pod)).To(HaveField("Verdict", "the pod gets no id"))
	Expect(inspect.Explain(ctx, s, ns, pod, c.name())).To(HaveField("Verdict", MatchRegexp("the pod has id [0-2] of "+c.kind+"."+c.group+"/"+worker)))
}

// verified expects that kubectl idalloc verify finds nothing wrong with a workload of the kind.
func (c custom) verified(ctx context.Context, ns string) {
	GinkgoHelper()
	verify := commands.NewVerify(commands.Program{
		Name: "kubectl idalloc", Log: func() (logr.Logger, error) { return logr.Discard(), nil },
		Connect: func() (*store.Store, string, error) {
			s, err := store.New(config, clock.RealClock{})
			return s, ns, err
		},
	})
	var out strings.Builder
	verify.SetOut(&out)
	verify.SetArgs([]string{strings.ToLower(c.kind) + "." + c.group + "/" + worker, "--kind=" + c.name(), "--wait=1m"})
	Expect(verify.ExecuteContext(ctx)).To(Succeed(), out.String)
	Expect(out.String()).To(ContainSubstring(c.kind + "." + c.group + "/" + worker))
}

func objects() dynamic.Interface {
	GinkgoHelper()
	d, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return d
}

// install makes the kind, which stays.
func (c custom) install(ctx context.Context) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": c.name()},
		"spec": map[string]any{
			"group": c.group, "scope": "Namespaced", "names": map[string]any{"kind": c.kind, "plural": c.resource, "singular": strings.ToLower(c.kind)},
			"versions": []any{map[string]any{
				"name": c.version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec":   map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": map[string]any{"replicas": map[string]any{"type": "integer"}}},
					"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{
					"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
				}},
			}},
		},
	}}
	crds := objects().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(func(ctx context.Context) error {
		_, err := objects().Resource(c.gvr()).List(ctx, metav1.ListOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
}

func (c custom) create(ctx context.Context, ns string, replicas int64) {
	GinkgoHelper()
	_, err := objects().Resource(c.gvr()).Namespace(ns).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": c.group + "/" + c.version, "kind": c.kind, "metadata": map[string]any{"name": worker},
		"spec": map[string]any{"replicas": replicas, "template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"version": "1"}}}},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c custom) patch(ctx context.Context, ns, subresource, text string) {
	GinkgoHelper()
	_, err := objects().Resource(c.gvr()).Namespace(ns).Patch(ctx, worker, types.MergePatchType, []byte(text), metav1.PatchOptions{}, strings.Fields(subresource)...)
	Expect(err).NotTo(HaveOccurred())
}

// operate is the kind's controller, until the spec ends.
func (c custom) operate(ns string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, owners := make(chan struct{}), objects().Resource(c.gvr()).Namespace(ns)
	go func() {
		defer close(ended)
		for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; {
			if owner, err := owners.Get(ctx, worker, metav1.GetOptions{}); err == nil {
				if err := c.makes(ctx, owner); err != nil && ctx.Err() == nil {
					GinkgoLogr.Info("the controller of the kind", "error", err.Error()) // the next round tries again
				}
			}
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
	}()
	DeferCleanup(func() { cancel(); <-ended })
}

// wanted returns how many pods there should be, from which template, and what the owner reference says.
func wanted(owner *unstructured.Unstructured) (n int, t corev1.PodTemplateSpec, hash string, refs []metav1.OwnerReference) {
	count, _, _ := unstructured.NestedInt64(owner.Object, "spec", "replicas")
	version, _, _ := unstructured.NestedString(owner.Object, "spec", "template", "metadata", "annotations", "version")
	t = template()
	t.Annotations = map[string]string{"version": version}
	h := fnv.New32a()
	_, _ = h.Write([]byte(version))
	hash = strconv.FormatUint(uint64(h.Sum32()), 16)
	t.Labels["hash"] = hash
	return int(count), t, hash, []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
}

// makeSets has a ReplicaSet for each revision, as Argo Rollouts has, and ends old pods first.
func makeSets(ctx context.Context, owner *unstructured.Unstructured) error {
	n, t, hash, refs := wanted(owner)
	sets := client.AppsV1().ReplicaSets(owner.GetNamespace())
	_, err := sets.Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: worker + "-" + hash, Labels: t.Labels, OwnerReferences: refs},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": worker, "hash": hash}}, Template: t},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	list, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, set := range list.Items {
		replicas := int32(0)
		if set.Labels["hash"] == hash {
			replicas = int32(n) //nolint:gosec // it is small
		}
		if *set.Spec.Replicas == replicas {
			continue
		}
		if _, err := sets.Patch(ctx, set.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// makePods makes pods itself, and removes those with the lowest deletion cost, as OpenKruise does.
func makePods(ctx context.Context, owner *unstructured.Unstructured) error {
	n, t, hash, refs := wanted(owner)
	all := client.CoreV1().Pods(owner.GetNamespace())
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: receipt.AssignLabel})
	if err != nil {
		return err
	}
	cost := func(pod corev1.Pod) int {
		n, _ := strconv.Atoi(pod.Annotations[assignment.DeletionCostKey]) // a pod that waits has none
		return n
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cost(b) - cost(a) })
	kept := 0
	for _, pod := range list.Items {
		if pod.Labels["hash"] == hash && kept < n {
			kept++
		} else if err := all.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			return err
		}
	}
	for ; kept < n; kept++ {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: worker + "-", Labels: t.Labels, Annotations: t.Annotations, OwnerReferences: refs}, Spec: t.Spec}
		if _, err := all.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
