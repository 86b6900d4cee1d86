package identity_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

func assigned(id, count int) identity.Identity {
	return identity.Identity{
		State: identity.StateAssigned, ID: id, Count: count, Token: 1753647547040015123, Pod: "worker-1", Namespace: "shop",
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"},
	}
}

func pending(count int) identity.Identity { return assigned(0, count).Without(identity.StatePending) }

func TestAnIdentityAsText(t *testing.T) {
	for want, id := range map[string]identity.Identity{"3/5": assigned(3, 5), "pending": pending(5), "fenced": assigned(3, 5).Without(identity.StateFenced)} {
		if got := id.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if identity.None >= 0 {
		t.Errorf("None is %d, which is an id", identity.None)
	}
}

// Whatever a program has put together, no program acts without an id, or under one that cannot be.
func TestAnIdentityThatCannotBe(t *testing.T) {
	draining := assigned(0, 1)
	draining.State = identity.StateDraining
	for name, id := range map[string]identity.Identity{
		"of no state": {Count: 1}, "draining, with an id": draining, "assigned, of none": assigned(0, 0), "assigned, of less than none": assigned(0, -1),
		"assigned, without an id": assigned(identity.None, 1),
	} {
		if id.Owns([]byte("a")) {
			t.Errorf("%s: it owns a key", name)
		}
	}
}

func TestAnIdentityWithoutAnID(t *testing.T) {
	want := identity.Identity{State: identity.StateFenced, ID: identity.None, Count: 5, Pod: "worker-1", Namespace: "shop", Owner: assigned(3, 5).Owner}
	if got := assigned(3, 5).Without(identity.StateFenced); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = identity.Identity{State: identity.StatePending, ID: identity.None, Pod: "worker-1", Namespace: "shop"}
	if got := identity.Pending("worker-1", "shop"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// complete has a value in each field.
func complete() identity.Identity {
	all := assigned(3, 5)
	all.Number, all.Stop = 1003, 4
	all.Partitions = identity.PartitionsOf(8, []identity.Share{{Set: placement.Between(0, 3), Token: all.Token}}, placement.Of(4), 2)
	return all
}

// A new field needs a value in complete. This test then names what is left to do: the JSON, Without, and the contract.
func TestEachFieldIsPublishedAndExplained(t *testing.T) {
	whole := complete()
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var read identity.Identity
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	without := whole.Without(identity.StateLost)
	stays := []string{"State", "ID", "Count", "Pod", "Namespace", "Owner", "Partitions"} // other tests compare ID and Partitions
	for field, value := range reflect.ValueOf(whole).Fields() {
		if value.IsZero() {
			t.Errorf("complete has no %s: with a value there, this test names what else the field needs", field.Name)
		}
		if !reflect.ValueOf(read).FieldByIndex(field.Index).Equal(value) {
			t.Errorf("MarshalJSON or UnmarshalJSON forgets %s", field.Name)
		}
		if after := reflect.ValueOf(without).FieldByIndex(field.Index); !after.IsZero() && !slices.Contains(stays, field.Name) {
			t.Errorf("Without keeps %s of an instance without an id", field.Name)
		}
	}
	contract, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if !strings.Contains(string(contract), `"`+key+`":`) {
			t.Errorf("docs/contract.md does not explain %q of identity.json", key)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, want := range []identity.Identity{assigned(0, 1), assigned(3, 5), pending(5)} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got identity.Identity
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s came back as %+v, %v", b, got, err)
		}
	}
}

func TestAnAssignedIdentityWithoutAUsableIDIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"state":"assigned","id":null,"count":5}`, `{"state":"assigned","count":5}`,
		`{"state":"assigned","id":5,"count":5}`, `{"state":"assigned","id":-1,"count":5}`, `[]`, `{"id":"3"}`,
	} {
		var id identity.Identity
		if err := json.Unmarshal([]byte(text), &id); err == nil {
			t.Errorf("%s was read as %+v", text, id)
		}
	}
}

func TestEveryKeyHasOneOwner(t *testing.T) {
	for _, count := range []int{1, 2, 5, 100} {
		for _, key := range []string{"", "a", "order-4711", "\x00\xff", strings.Repeat("k", 1000)} {
			owners := 0
			for id := range count {
				if assigned(id, count).Owns([]byte(key)) {
					owners++
				}
			}
			if owners != 1 {
				t.Errorf("%d of %d ids own %q", owners, count, key)
			}
		}
	}
	if pending(1).Owns([]byte("a")) {
		t.Error("an instance without an id owns a key")
	}
}

// The hash is part of the contract: other languages must get the same result. These are published
// test vectors of FNV-1a 64.
func TestTheHashIsFNV1a(t *testing.T) {
	for key, hash := range map[string]uint64{"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		const count = 1000
		if !assigned(int(hash%count), count).Owns([]byte(key)) {
			t.Errorf("id %d of %d does not own %q", hash%count, count, key)
		}
	}
}

func TestAnOwnerOfAnotherGroupIsNamedWithIt(t *testing.T) {
	for want, o := range map[string]identity.Owner{
		"StatefulSet/worker":                {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "worker"},
		"StatefulSet.apps.kruise.io/worker": {APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "worker"},
		"Job/worker":                        {APIVersion: "batch/v1", Kind: "Job", Name: "worker"},
		"Deployment/worker":                 {Kind: "Deployment", Name: "worker"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%+v is %s, want %s", o, got, want)
		}
	}
}
