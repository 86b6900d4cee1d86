package store

import (
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
	leasePath  = leasesPath + "/idalloc-deployment.worker-3"
)

// theLease is that of slot 3, held by pod.
func theLease(pod, version string) slotlease.Lease {
	r := locks()
	r.UID, r.Strict, r.Share.Of, r.Share.Partitions = pod+"-uid", true, 8, placement.Between(0, 3)
	return slotlease.Lease{ID: 3, Holder: pod + "-uid", Receipt: r, Pod: pod, Lasts: 40 * time.Second, Renewed: testTime.Truncate(time.Microsecond).UTC(), Version: version}
}

// noLease is the Lease of slot 3 if there is none.
func noLease() slotlease.Lease {
	return slotlease.Lease{ID: 3, Receipt: receipt.Receipt{Share: receipt.Nothing()}}
}

func TestALeaseIsMadeTakenAndGivenBack(t *testing.T) {
	server, s := newShelf(t, nil)
	put := func(next slotlease.Lease) (slotlease.Lease, error) { return s.PutLease(t.Context(), theRef(), next) }
	got := func() slotlease.Lease {
		t.Helper()
		l, err := s.GetLease(t.Context(), theRef(), 3)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := got(); !reflect.DeepEqual(l, noLease()) {
		t.Errorf("a Lease that does not exist is %+v", l)
	}
	made, err := put(theLease("a", ""))
	if err != nil || made.Version == "" || !reflect.DeepEqual(made, got()) || !reflect.DeepEqual(made, theLease("a", made.Version)) {
		t.Errorf("made: %+v, %v", made, err)
	}
	if _, err := put(theLease("b", "")); !errors.Is(err, request.ErrConflict) {
		t.Errorf("a second pod makes it, too: %v", err)
	}
	taken, err := put(theLease("b", made.Version))
	if err != nil || taken.Version == made.Version || !reflect.DeepEqual(taken, theLease("b", taken.Version)) || !reflect.DeepEqual(taken, got()) {
		t.Errorf("taken over: %+v, %v", taken, err)
	}
	if _, err := put(theLease("a", made.Version)); !errors.Is(err, request.ErrConflict) {
		t.Errorf("the first pod renews it late: %v", err)
	}
	free := noLease()
	free.Version, free.Lasts = taken.Version, time.Second
	given, err := put(free)
	if free.Version = given.Version; err != nil || !reflect.DeepEqual(given, free) || !reflect.DeepEqual(got(), free) {
		t.Errorf("given back: %+v, %v", given, err)
	}
	const by = " as " + assignment.FieldManager
	if want := []string{
		"POST " + leasesPath + by, "POST " + leasesPath + by, "PUT " + leasePath + by, "PUT " + leasePath + by, "PUT " + leasePath + by,
	}; !slices.Equal(server.sent, want) {
		t.Errorf("sent %q, want %q", server.sent, want)
	}
	delete(server.objects, leasePath)
	if _, err := put(theLease("a", given.Version)); !errors.Is(err, request.ErrConflict) {
		t.Errorf("it was deleted: %v", err)
	}
}

// People and the garbage collector read a Lease, too.
func TestWhatALeaseSays(t *testing.T) {
	server, s := newShelf(t, nil)
	if _, err := s.PutLease(t.Context(), theRef(), theLease("a", "")); err != nil {
		t.Fatal(err)
	}
	meta, spec := metaOf(server.objects[leasePath]), server.objects[leasePath]["spec"]
	if want := (map[string]any{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: "3"}); !reflect.DeepEqual(meta["labels"], want) {
		t.Errorf("labels %v", meta["labels"])
	}
	if owners := meta["ownerReferences"]; owners != nil {
		t.Errorf("the garbage collector would delete it with %v, while work under it may go on", owners)
	}
	want := map[string]any{"holderIdentity": "a/a-uid", "leaseDurationSeconds": 40.0, "renewTime": testTime.UTC().Format("2006-01-02T15:04:05.000000Z")}
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("it says %v, want %v", spec, want)
	}
}

func TestHowLongALeaseMayBeSilent(t *testing.T) {
	if got := (slotlease.Lease{Lasts: 40 * time.Second}).Outlasts(); got != 43*time.Second {
		t.Errorf("%s, want 40s and a twentieth of it, and a second", got)
	}
	// A policy pinned it to years.
	for _, seconds := range []int64{1e8, math.MaxInt32, math.MaxInt64} {
		server, s := newShelf(t, nil)
		if _, err := s.PutLease(t.Context(), theRef(), theLease("a", "")); err != nil {
			t.Fatal(err)
		}
		server.objects[leasePath]["spec"].(map[string]any)["leaseDurationSeconds"] = seconds //nolint:errcheck,forcetypeassert // every Lease has one
		if l, err := s.GetLease(t.Context(), theRef(), 3); err != nil || l.Outlasts() < 3*365*24*time.Hour {
			t.Errorf("one that lasts for %d seconds counts as over after %s (%v)", seconds, l.Outlasts(), err)
		}
	}
}

// Others do not find a Lease without its labels, and take one without a receipt for damaged. One that is let go locks nothing.
func TestALeaseThatIsNotKept(t *testing.T) {
	for key, field := range map[string]string{receipt.Key: "annotations", receipt.IDLabel: "labels", receipt.OwnerLabel: "labels"} {
		for name, admits := range map[string]func(all map[string]any){
			"dropped": func(all map[string]any) { delete(all, key) },
			"changed": func(all map[string]any) { all[key] = "other" },
		} {
			server, s := newShelf(t, nil)
			made, err := s.PutLease(t.Context(), theRef(), theLease("a", ""))
			if err != nil {
				t.Fatal(err)
			}
			server.admits = func(o map[string]any) {
				if all, there := metaOf(o)[field].(map[string]any); there {
					admits(all)
				}
			}
			_, err = s.PutLease(t.Context(), theRef(), theLease("a", made.Version))
			if !errors.Is(err, request.ErrNotKept) || request.Temporary(err) || !strings.Contains(err.Error(), key+" of Lease idalloc-deployment.worker-3 in namespace shop") {
				t.Errorf("%s is %s: %v", key, name, err)
			}
			now, err := s.GetLease(t.Context(), theRef(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.PutLease(t.Context(), theRef(), slotlease.Lease{ID: 3, Version: now.Version}); err != nil {
				t.Errorf("%s is %s, and the Lease cannot be let go: %v", key, name, err)
			}
		}
	}
}

// What its readers act on is in the spec, too. What is for people only may be another.
func TestALeaseWhoseTimeIsNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		admits func(spec map[string]any)
		names  string // empty: it is kept
	}{
		"a cap":             {func(spec map[string]any) { spec["leaseDurationSeconds"] = 15 }, "leaseDurationSeconds"},
		"no time at all":    {func(spec map[string]any) { delete(spec, "leaseDurationSeconds") }, "leaseDurationSeconds"},
		"another holder":    {func(spec map[string]any) { spec["holderIdentity"] = "b/b-uid" }, "holderIdentity"},
		"no holder":         {func(spec map[string]any) { delete(spec, "holderIdentity") }, "holderIdentity"},
		"another renewTime": {func(spec map[string]any) { spec["renewTime"] = "2026-01-01T00:00:00.000000Z" }, ""},
	} {
		server, s := newShelf(t, nil)
		server.admits = func(o map[string]any) { tc.admits(o["spec"].(map[string]any)) } //nolint:errcheck,forcetypeassert // every Lease has one
		stands, err := s.PutLease(t.Context(), theRef(), theLease("a", ""))
		now, err2 := s.GetLease(t.Context(), theRef(), 3)
		switch {
		case err2 != nil || !reflect.DeepEqual(stands, now):
			t.Errorf("%s: %+v is returned, and %+v stands (%v)", name, stands, now, err2)
		case tc.names == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.names != "" && (!errors.Is(err, request.ErrNotKept) || !strings.Contains(err.Error(), tc.names)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Lease whose receipt cannot be read locks its slot and every partition.
func TestALeaseThatIsDamaged(t *testing.T) {
	elsewhere := theLease("a", "").Receipt
	elsewhere.Share.ID = 4
	for name, change := range map[string]func(meta, spec map[string]any){
		"no receipt":               func(m, _ map[string]any) { delete(m, "annotations") },
		"no text":                  func(m, _ map[string]any) { m["annotations"] = map[string]any{receipt.Key: ""} },
		"damage":                   func(m, _ map[string]any) { m["annotations"] = map[string]any{receipt.Key: "{"} },
		"a receipt for another id": func(m, _ map[string]any) { m["annotations"] = map[string]any{receipt.Key: elsewhere.Encode()} },
		"a holder without a name":  func(m, s map[string]any) { m["annotations"], s["holderIdentity"] = nil, "a-uid" },
		"no times": func(m, s map[string]any) {
			m["annotations"] = nil
			delete(s, "renewTime")
			delete(s, "leaseDurationSeconds")
		},
	} {
		server, s := newShelf(t, nil)
		if _, err := s.PutLease(t.Context(), theRef(), theLease("a", "")); err != nil {
			t.Fatal(err)
		}
		change(metaOf(server.objects[leasePath]), server.objects[leasePath]["spec"].(map[string]any)) //nolint:errcheck,forcetypeassert // every Lease has one
		l, err := s.GetLease(t.Context(), theRef(), 3)
		if err != nil || l.Holder != "a-uid" || !l.Receipt.LocksSlot(3) || l.Receipt.LocksSlot(4) || !l.Receipt.LocksOf(placement.Of(5, 7)).Equal(placement.Of(5, 7)) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// Only what has the name of the owner's Lease is one, whatever labels others have.
func TestLeasesAreListed(t *testing.T) {
	server, s := newShelf(t, nil)
	other := theRef()
	other.Name = "other"
	for ref, ids := range map[kinds.Ref][]int{theRef(): {0, 3, 12}, other: {1}} {
		for _, id := range ids {
			l := theLease("a", "")
			l.ID, l.Receipt.Share.ID = id, id
			if _, err := s.PutLease(t.Context(), ref, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, id := range map[string]string{"copy": "5", "no-number": "five"} {
		server.objects[leasesPath+"/"+name] = map[string]any{apiVersionField: "coordination.k8s.io/v1", "kind": "Lease", metadataField: map[string]any{
			"name": name, "namespace": "shop", "labels": map[string]any{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: id},
		}}
	}
	got := map[int]string{}
	err := s.EachLease(t.Context(), theRef(), func() { clear(got) }, func(l slotlease.Lease) { got[l.ID] = l.Holder })
	if want := (map[int]string{0: "a-uid", 3: "a-uid", 12: "a-uid"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestWhatARefusedLeaseMeans(t *testing.T) {
	forbids := &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "User cannot do resource"}
	for name, tc := range map[string]struct {
		version, verb string
		refusal       *metav1.Status
		want          error // nil is a *request.ForbiddenError
	}{
		"a Role without create":  {"", "create", forbids, nil},
		"a Role without update":  {"1", "update", forbids, nil},
		"an error of the server": {"1", "", &metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}, request.ErrAmbiguous},
		"the same for a new one": {"", "", &metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}, request.ErrAmbiguous},
		"a conflict":             {"1", "", &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}, request.ErrConflict},
	} {
		server, s := newShelf(t, nil)
		server.refusal = tc.refusal
		_, err := s.PutLease(t.Context(), theRef(), theLease("a", tc.version))
		var forbidden *request.ForbiddenError
		switch {
		case tc.want != nil && !errors.Is(err, tc.want):
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		case tc.want == nil && (!errors.As(err, &forbidden) || forbidden.Verb != tc.verb || forbidden.Resource != "leases" || forbidden.Group != "coordination.k8s.io"):
			t.Errorf("%s: %v, want a ForbiddenError", name, err)
		}
	}
	server, s := newShelf(t, nil)
	server.reading = forbids
	var forbidden *request.ForbiddenError
	if _, err := s.GetLease(t.Context(), theRef(), 3); !errors.As(err, &forbidden) || forbidden.Verb != "get" {
		t.Errorf("a Role without get: %v", err)
	}
	if err := s.EachLease(t.Context(), theRef(), func() {}, func(slotlease.Lease) {}); !errors.As(err, &forbidden) || forbidden.Verb != "list" {
		t.Errorf("a Role without list: %v", err)
	}
}
