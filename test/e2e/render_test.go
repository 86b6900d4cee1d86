package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifest is a rendered example.
type manifest struct {
	serviceAccount *corev1.ServiceAccount
	role           *rbacv1.Role
	binding        *rbacv1.RoleBinding
	deployment     *appsv1.Deployment
	// names are kind and name of all of it.
	names []string
}

// render runs "kubectl kustomize" on a folder of config/. Unknown fields are errors: the API server
// would drop them with no more than a warning.
func render(ctx context.Context, folder string) (*manifest, error) {
	cmd := exec.CommandContext(ctx, "kubectl", "kustomize", filepath.Join("..", "..", "config", folder)) //nolint:gosec // constants of the tests
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl kustomize %s: %w: %s", folder, err, stderr.String())
	}
	m := &manifest{}
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(out)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		if err := m.add(doc); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
}

func (m *manifest) add(doc []byte) error {
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	obj, _, err := strict.Decode(doc, nil, nil)
	if err != nil {
		return err
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	m.names = append(m.names, obj.GetObjectKind().GroupVersionKind().Kind+"/"+object.GetName())
	switch o := obj.(type) {
	case *corev1.ServiceAccount:
		m.serviceAccount = o
	case *rbacv1.Role:
		m.role = o
	case *rbacv1.RoleBinding:
		m.binding = o
	case *appsv1.Deployment:
		m.deployment = o
	case *appsv1.StatefulSet:
		m.deployment = &appsv1.Deployment{ // the template is what the tests look at
			ObjectMeta: o.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: o.Spec.Template},
		}
	case *corev1.Service, *corev1.ConfigMap, *coordinationv1.Lease, *admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
		*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding:
		// The suite installs these, and test/envtest/{policy,inject} test what they do.
	default:
		return fmt.Errorf("the tests do not know what to do with a %s", obj.GetObjectKind().GroupVersionKind())
	}
	return nil
}

// container returns a container or init container of the Deployment, nil if there is none of that name.
func (m *manifest) container(name string) *corev1.Container {
	pod := &m.deployment.Spec.Template.Spec
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
