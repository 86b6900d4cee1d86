package policies_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/controller/test/simulation/policies"
	"github.com/idalloc/idalloc/test/simulation/object"
	api "github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// lease is the Lease of slot 0 that pod a has, as of a moment.
func lease(moment string, more object.Object) object.Object {
	const holder = "a"
	meta := object.Object{
		"name": "idalloc-deployment.worker-0", "namespace": api.Namespace, "resourceVersion": moment,
		"labels":      object.Object{"idalloc.dev/owner": "deployment.worker", "idalloc.dev/instance-id": "0"},
		"annotations": object.Object{"idalloc.dev/receipt": `{"uid":"` + holder + `","owner":"Deployment/worker","id":0,"strict":true,"write":"a` + moment + `"}`},
	}
	maps.Copy(meta, more)
	return object.Object{object.Metadata: meta, "spec": object.Object{
		"holderIdentity": holder + "/" + holder, "leaseDurationSeconds": int64(30), "renewTime": "2000-01-01T00:00:" + moment + ".000000Z",
	}}
}

// What is remembered of one renewal must permit no other write.
func TestARememberedRenewalPermitsNothingElse(t *testing.T) {
	all, err := policies.Shipped("../../../../config")
	if err != nil {
		t.Fatal(err)
	}
	renew := func(by string, old, next object.Object) string {
		return all.Refuses(world.Account{Pod: by, UID: by}, api.Write{Operation: "UPDATE", Kind: object.KindOf(object.Leases), Name: object.Name(next), Old: old, Next: next})
	}
	for _, moment := range []string{"10", "11", "12"} {
		if says := renew("a", lease("09", nil), lease(moment, nil)); says != "" {
			t.Fatalf("the renewal of %s is refused: %s", moment, says)
		}
	}
	for name, write := range map[string]struct {
		by   string
		next object.Object
		says string
	}{
		"another pod":  {"b", lease("13", nil), "the token is that of pod b/b"},
		"a finalizer":  {"a", lease("13", object.Object{"finalizers": []any{"x/y"}}), "may not set ownerReferences or finalizers"},
		"a long write": {"a", lease(strings.Repeat("1", 80_000), nil), "may write at most"},
	} {
		if says := renew(write.by, lease("09", nil), write.next); !strings.Contains(says, write.says) {
			t.Errorf("%s: %q instead of %q", name, says, write.says)
		}
	}
}
