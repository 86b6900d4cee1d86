package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// Manifest reads a file of this repository. Unknown fields are errors.
func Manifest[T runtime.Object](path string) (object T, err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return object, err
	}
	content, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of this repository
	if err != nil {
		return object, err
	}
	decoded, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return object, fmt.Errorf("%s: %w", path, err)
	}
	object, ok := decoded.(T)
	if !ok {
		return object, fmt.Errorf("%s has a %T", path, decoded)
	}
	return object, nil
}

// Install creates the admission policies, bindings and ClusterRoles that files of config have.
func Install(ctx context.Context, client kubernetes.Interface, files ...string) error {
	options, admission := metav1.CreateOptions{}, client.AdmissionregistrationV1()
	for _, file := range files {
		object, err := Manifest[runtime.Object](filepath.Join("config", file))
		if err != nil {
			return err
		}
		switch o := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_, err = admission.ValidatingAdmissionPolicies().Create(ctx, o, options)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = admission.ValidatingAdmissionPolicyBindings().Create(ctx, o, options)
		case *admissionv1.MutatingAdmissionPolicy:
			_, err = admission.MutatingAdmissionPolicies().Create(ctx, o, options)
		case *admissionv1.MutatingAdmissionPolicyBinding:
			_, err = admission.MutatingAdmissionPolicyBindings().Create(ctx, o, options)
		case *rbacv1.ClusterRole:
			_, err = client.RbacV1().ClusterRoles().Create(ctx, o, options)
		default:
			err = fmt.Errorf("the suite does not install a %T", o)
		}
		if err != nil {
			return fmt.Errorf("suite: install %s: %w", file, err)
		}
	}
	return nil
}
