package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
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

// Install creates the admission policies, bindings and ClusterRoles that files of config have. It returns when the API server applies all
// validating policies among them, or the context ends.
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
	// A refresh takes the bindings at once, and then finds each one's policy: the first marker can be in force before the policies beside it.
	for _, name := range []string{"first", "second"} {
		if err := inForce(ctx, client, "in-force-"+name); err != nil {
			return fmt.Errorf("suite: wait until the policies are in force: %w", err)
		}
	}
	return nil
}

// inForce waits until the API server has taken a list of policies in which one of this name is. It reads the list once a second, compiles
// every policy, and then puts all in force together, which can take longer than a spec needs to begin.
func inForce(ctx context.Context, client kubernetes.Interface, name string) error {
	admission, all := client.AdmissionregistrationV1(), admissionv1.OperationAll
	_, err := admission.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{all}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: name}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !strings.Contains(err.Error(), name) {
			return false, err
		}
		return err != nil, nil
	})
}
