package election

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// refused is a lease that the account may not make.
type refused struct{ resourcelock.Interface }

// Create implements resourcelock.Interface.
func (refused) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "worker", nil)
}

// Describe implements resourcelock.Interface.
func (refused) Describe() string { return "shop/worker" }

// The Role has no create, so a Lease that was deleted does not come back by itself.
func TestALeaseThatIsGoneIsNamedWithTheWayOut(t *testing.T) {
	err := (&lock{Interface: refused{}}).Create(t.Context(), resourcelock.LeaderElectionRecord{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the Lease shop/worker does not exist") || !strings.Contains(err.Error(), "apply it again") {
		t.Error(err)
	}
}
