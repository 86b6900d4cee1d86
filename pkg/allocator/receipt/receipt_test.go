package receipt_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

const owner = "Deployment/worker"

// pod carries the text as its receipt.
func pod(text, label string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "worker-1", UID: "u1", Labels: map[string]string{receipt.IDLabel: label}, Annotations: map[string]string{receipt.Key: text},
	}}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for want, r := range map[string]receipt.Receipt{
		`{"uid":"u1","owner":"Deployment/worker","write":"w"}`: {State: receipt.Waits, Share: receipt.Nothing()},
		`{"uid":"u1","owner":"Deployment/worker","gaveUp":true,"rank":1,"write":"w"}`: {
			State: receipt.GaveUp, Share: receipt.Nothing(), Rank: 1,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":0,"handsOver":true,"strict":true,"write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 0}, HandsOver: true, Strict: true,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0-3,9 of 16","rank":4,"write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 3, Of: 16, Partitions: placement.Of(0, 1, 2, 3, 9)}, Rank: 4,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":" of 16","write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 3, Of: 16},
		},
	} {
		r.UID, r.Owner, r.Write = "u1", owner, "w"
		if got := r.Encode(); got != want {
			t.Errorf("written as %s, want %s", got, want)
		}
		if got, err := receipt.Of(pod(want, "3"), owner); err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
			t.Errorf("%s is read as %+v (%v), want %+v", want, got, err, r)
		}
	}
}

func TestADamagedReceiptLocksItsLabelsSlotAndEveryPartition(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"uid":"u1"}`, `{"uid":"u1","owner":"Deployment/worker","id":-1}`, `{"uid":"u1","owner":"Deployment/worker","id":"3"}`,
		`{"uid":"u1","owner":"Deployment/worker","id":3,"gaveUp":true}`, `{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0-3"}`,
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"x of 4"}`, `{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0 of 0"}`,
	} {
		r, err := receipt.Of(pod(text, "7"), owner)
		if !errors.Is(err, receipt.ErrUnreadable) || !r.LocksSlot(7) || r.LocksSlot(3) || !r.LocksOf(placement.Of(5)).Contains(5) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		if r, _ := receipt.Of(pod(text, "x"), owner); r.LocksSlot(0) || !r.LocksOf(placement.Of(5)).Contains(5) {
			t.Errorf("%q with a label that is no id: %+v", text, r)
		}
	}
}

func TestAReceiptOfSomebodyElseSaysNothing(t *testing.T) {
	for _, text := range []string{
		`{"uid":"u2","owner":"Deployment/worker","id":3,"write":"w"}`, `{"uid":"u1","owner":"Deployment/other","id":3,"write":"w"}`,
	} {
		if r, err := receipt.Of(pod(text, "3"), owner); err != nil || r.State != receipt.None || r.LocksSlot(3) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	if r, err := receipt.Of(&metav1.PartialObjectMetadata{}, owner); err != nil || r.State != receipt.None || !r.Share.Empty() {
		t.Errorf("no receipt: %+v, %v", r, err)
	}
}

func TestEachDrawDiffers(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		w := receipt.Draw()
		if seen[w] {
			t.Fatalf("%q was drawn twice", w)
		}
		seen[w] = true
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0-3,9 of 16","rank":4,"write":"w"}`)
	f.Add(`{"uid":"u1","owner":"Deployment/worker","gaveUp":true,"rank":1,"write":"w"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := receipt.Parse(text)
		if err != nil {
			return
		}
		again, err := receipt.Parse(r.Encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Errorf("%q is read as %+v, and written and read again as %+v (%v)", text, r, again, err)
		}
	})
}
