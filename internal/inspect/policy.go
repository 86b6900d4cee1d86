package inspect

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// PolicyMissing returns a sentence that says what of config/policy the cluster lacks, and what to do. It is empty if nothing is lacking, or if
// the API server does not answer. It blocks for up to six requests.
//
// config/policy lets everybody read its policies. So it counts as missing if they may not be read.
func PolicyMissing(ctx context.Context, s *store.Store) string {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	for _, name := range []string{"idalloc", "idalloc-leases", "idalloc-events"} {
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			o, err := s.Dynamic.Resource(group.WithResource(resource)).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return lacking(fmt.Sprintf("the cluster has no %s/%s", resource, name))
			case apierrors.IsForbidden(err):
				return fmt.Sprintf("you may not get %s/%s, so nobody can tell here whether an admission policy limits the tokens of pods: config/policy of this version lets "+
					"everybody see it; let an administrator run kubectl apply -k config/policy", resource, name)
			case err != nil:
				return ""
			case resource == "validatingadmissionpolicybindings" && !denies(o):
				return lacking(fmt.Sprintf("validationActions of %s/%s lack Deny", resource, name))
			}
		}
	}
	return ""
}

func lacking(what string) string {
	return what + ", so no admission policy limits the tokens of pods: whoever copies one may change all pods of the namespace. Let an administrator run kubectl apply -k config/policy"
}

// denies reports whether a binding refuses what its policy is against.
func denies(binding *unstructured.Unstructured) bool {
	actions, _, _ := unstructured.NestedStringSlice(binding.Object, "spec", "validationActions")
	return slices.Contains(actions, "Deny")
}
