package election

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyThatAnotherCandidateWasFirstIsNoError(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, tc := range map[string]struct {
		err   error
		calms bool
	}{
		"it made the lease": {apierrors.NewAlreadyExists(leases, "worker"), true},
		"it took the lease": {apierrors.NewConflict(leases, "worker", errors.New("the object has been modified")), true},
		"a missing Role":    {apierrors.NewForbidden(leases, "worker", errors.New("no")), false},
		"no answer":         {errors.New("connection refused"), false},
		"no lease":          {apierrors.NewNotFound(leases, "worker"), false},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			log := calm(funcr.New(func(_, text string) { said += text }, funcr.Options{}))
			log.Error(tc.err, "Error initially creating lease lock", "lock", "shop/worker")
			if strings.Contains(said, `"error"=`) == tc.calms || !strings.Contains(said, tc.err.Error()[:10]) || !strings.Contains(said, "shop/worker") {
				t.Errorf("the log has %s", said)
			}
		})
	}
	calm(logr.Discard()).Error(errors.New("it is not heard"), "")
}
