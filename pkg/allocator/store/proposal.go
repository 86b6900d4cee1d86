package store

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// SetProposal writes a proposal on a pod for its process, and returns the pod as written. pod is the pod as last read. The write fails unless the pod has
// the same UID and the same proposal as pod. If next confirms something new, text are the bytes of the confirmed receipt, and the pod must still have them;
// otherwise text is empty. Errors: as of SwapLock.
func (s *Store) SetProposal(ctx context.Context, pod *metav1.PartialObjectMetadata, text string, next receipt.Proposal) (*metav1.PartialObjectMetadata, error) {
	ops := []operation{test("/metadata/uid", pod.UID)}
	if pod.Annotations == nil { // a patch cannot add a key to a missing map
		ops = append(ops, test("/metadata/annotations", nil), add("/metadata/annotations", map[string]string{}))
	}
	path, encoded := pointer("metadata", annotationsField, receipt.ProposalKey), next.Encode()
	ops = append(ops, test(path, lookup(pod.Annotations, receipt.ProposalKey)))
	if text != "" {
		ops = append(ops, test(pointer("metadata", annotationsField, receipt.Key), text))
	}
	body, err := encode(append(ops, add(path, encoded)))
	if err != nil {
		return nil, err
	}
	written, err := s.patchPod(ctx, pod, body)
	if err == nil && written.Annotations[receipt.ProposalKey] != encoded {
		err = fmt.Errorf("%w: annotation %s of pod %s in namespace %s: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it",
			request.ErrNotKept, receipt.ProposalKey, pod.Name, pod.Namespace)
	}
	return written, err
}
