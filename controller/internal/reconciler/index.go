package reconciler

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	// index finds pods and ReplicaSets by the UID of their controller. It also finds pods by the owner under which they run, and pods without a controller by
	// the owner that they lock for.
	index = "controller"
	// revisionKey is an annotation that the Deployment controller sets on each ReplicaSet.
	revisionKey = "deployment.kubernetes.io/revision"
	// ownKeys is the prefix of the keys that idalloc and its users write. In the cache, hashKey stands for all of them on an owner.
	ownKeys = "idalloc.dev/"
	hashKey = ownKeys + "hash"
	// podKind is the kind of a queue key that stands for a pod whose owner is not known.
	podKind = "Pod"
)

var replicaSets = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kinds.ReplicaSet} //nolint:gochecknoglobals // a constant that Go cannot express

func metaOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}}
}

func metaList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind + "List"}}
}

// indexed returns the values of index for a pod or a ReplicaSet.
func indexed(o client.Object) (values []string) {
	r, err := receipt.Parse(o.GetAnnotations()[receipt.Key])
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		values = append(values, string(c.UID))
	} else if err == nil && r.State == receipt.Locks {
		values = append(values, lockValue(r.Owner))
	}
	// Its program runs under an id of that owner for life, even if the pod changes owners.
	if from := former(o.GetAnnotations()[receipt.IdentityKey]); from != "" && !slices.Contains(values, lockValue(from)) {
		values = append(values, lockValue(from))
	}
	return values
}

// lockValue is the value of index for a pod that locks a slot of the owner and has no controller, or that runs under an id of the owner.
func lockValue(owner string) string { return "lock " + assignment.OwnerLabelValue(owner) }

// former returns the owner under which a pod began, as "Kind/name".
func former(text string) string {
	var id identity.Identity
	if text == "" || id.UnmarshalJSON([]byte(text)) != nil || id.Owner.Name == "" {
		return ""
	}
	return id.Owner.String()
}
