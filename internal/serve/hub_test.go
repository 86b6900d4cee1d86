package serve

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
)

func assigned(id, count int, token int64) identity.Identity {
	return identity.Identity{
		State: identity.StateAssigned, ID: id, Count: count, Token: token, Pod: "worker-1", Namespace: "shop",
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"},
	}
}

func without(state identity.State, count int) identity.Identity {
	return assigned(0, count, 0).Without(state)
}

func TestTheHubWakesForChangesOnly(t *testing.T) {
	h := NewHub(without(identity.StatePending, 5))
	first := h.Get()
	changed := h.Changed(first.Version)
	h.Set(without(identity.StatePending, 5))
	h.SetStale(true)
	select {
	case <-changed:
		t.Error("woken although the identity is the same")
	default:
	}
	h.Set(assigned(1, 5, 7))
	select {
	case <-changed:
	default:
		t.Error("not woken by a change")
	}
	select {
	case <-h.Changed(first.Version):
	default:
		t.Error("a reader that is behind has to wait")
	}
	if got := h.Get(); got.Identity != assigned(1, 5, 7) || !got.Stale || got.Version != first.Version+1 {
		t.Errorf("the hub holds %+v", got)
	}
}
