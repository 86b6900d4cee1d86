package policy

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

//nolint:gochecknoglobals // constants that Go cannot express
var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	dryRun      = []string{metav1.DryRunAll}
)

// theDeployment is the name of the specs' Deployment, and patchVerb the verb that idalloc writes with.
const (
	theDeployment = "deployment"
	patchVerb     = "patch"
	updateVerb    = "update"
)

// mark is the rule that the policy knows an account by.
func mark() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"idalloc.dev"}, Resources: []string{"slots"}, Verbs: []string{"allocate"}}
}

// actor sends requests as one user to one namespace. None of them changes anything.
type actor struct {
	namespace string
	dynamic   dynamic.Interface
}

func newActor(namespace string, config *rest.Config) actor {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return actor{namespace, client}
}

// in acts with the token that a pod has.
func in(ctx context.Context, pod *corev1.Pod) actor {
	GinkgoHelper()
	config, err := env.ControlPlane.PodConfig(ctx, pod)
	Expect(err).NotTo(HaveOccurred())
	return newActor(pod.Namespace, config)
}

// withoutPod acts with a token of an account that names no pod.
func withoutPod(ctx context.Context, namespace, account string) actor {
	GinkgoHelper()
	config, err := env.ControlPlane.ServiceAccountConfig(ctx, namespace, account)
	Expect(err).NotTo(HaveOccurred())
	return newActor(namespace, config)
}

func (a actor) merge(ctx context.Context, resource schema.GroupVersionResource, name, patch string, subresources ...string) error {
	return a.patch(ctx, types.MergePatchType, resource, name, patch, subresources...)
}

func (a actor) patch(ctx context.Context, kind types.PatchType, resource schema.GroupVersionResource, name, patch string, subresources ...string) error {
	_, err := a.dynamic.Resource(resource).Namespace(a.namespace).Patch(ctx, name, kind, []byte(patch),
		metav1.PatchOptions{FieldManager: "idalloc", DryRun: dryRun}, subresources...)
	return err
}

// apply sends a server-side apply that takes over what it names.
func (a actor) apply(ctx context.Context, resource schema.GroupVersionResource, name string, object map[string]any) error {
	force := true
	_, err := a.dynamic.Resource(resource).Namespace(a.namespace).Patch(ctx, name, types.ApplyPatchType, mustJSON(object),
		metav1.PatchOptions{FieldManager: "idalloc", Force: &force, DryRun: dryRun})
	return err
}

// replace reads an object, changes it and sends all of it.
func (a actor) replace(ctx context.Context, resource schema.GroupVersionResource, name string, change func(*unstructured.Unstructured)) error {
	objects := a.dynamic.Resource(resource).Namespace(a.namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a controller may write its status meanwhile
		object, err := objects.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(object)
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{FieldManager: "idalloc", DryRun: dryRun})
		return err
	})
}

func (a actor) remove(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	return a.dynamic.Resource(resource).Namespace(a.namespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
}

func (a actor) create(ctx context.Context, resource schema.GroupVersionResource, object map[string]any, subresources ...string) error {
	_, err := a.dynamic.Resource(resource).Namespace(a.namespace).Create(ctx, &unstructured.Unstructured{Object: object},
		metav1.CreateOptions{DryRun: dryRun}, subresources...)
	return err
}

// request is one that actors send.
type request = func(context.Context, actor) error

func merges(resource schema.GroupVersionResource, name, patch string, subresources ...string) request {
	return func(ctx context.Context, a actor) error { return a.merge(ctx, resource, name, patch, subresources...) }
}

func patches(kind types.PatchType, resource schema.GroupVersionResource, name, patch string, subresources ...string) request {
	return func(ctx context.Context, a actor) error {
		return a.patch(ctx, kind, resource, name, patch, subresources...)
	}
}

func removes(resource schema.GroupVersionResource, name string) request {
	return func(ctx context.Context, a actor) error { return a.remove(ctx, resource, name) }
}

// limited waits until the API server applies the policy to this actor: it learns of Roles and policies a moment after they are written.
func (a actor) limited(ctx context.Context, resource schema.GroupVersionResource, name string) {
	GinkgoHelper()
	Eventually(func() error {
		return a.merge(ctx, resource, name, `{"metadata":{"labels":{"example.com/probe":"yes"}}}`)
	}).WithContext(ctx).Should(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'idalloc'")))
}

// free waits until the API server permits this actor what it refuses to one that the policy limits.
func (a actor) free(ctx context.Context, resource schema.GroupVersionResource, name string) {
	GinkgoHelper()
	Eventually(func() error {
		return a.merge(ctx, resource, name, `{"metadata":{"labels":{"example.com/probe":"yes"}}}`)
	}).WithContext(ctx).Should(Succeed())
}

// idle returns a container that does nothing.
func idle() corev1.Container { return suite.Container("main", "/bin/sleep", "100000") }

// somePods waits until a workload has n pods.
func somePods(ctx context.Context, ns *suite.Namespace, name string, n int) []corev1.Pod {
	GinkgoHelper()
	var found []corev1.Pod
	Eventually(func(g Gomega) {
		var err error
		found, err = ns.Pods(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveLen(n))
	}).WithContext(ctx).Should(Succeed())
	return found
}

// object is one of this kind, with a spec if it is not nil.
func object(apiVersion, kind, name string, spec any) map[string]any {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	if spec != nil {
		o["spec"] = spec
	}
	return o
}

func mustJSON(v any) []byte {
	GinkgoHelper()
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return b
}

// annotations is a merge patch that sets them.
func annotations(set map[string]string) []byte {
	GinkgoHelper()
	return mustJSON(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: set}})
}
