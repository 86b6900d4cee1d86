package receipt_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
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
		`{"uid":"u1","owner":"Deployment/worker","id":0,"begun":true,"write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 0}, Begun: true,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":3,"begun":true,"number":1027,"write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 3}, Begun: true, Number: 1027,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0-3,9 of 16","rank":4,"write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 3, Of: 16, Partitions: placement.Of(0, 1, 2, 3, 9)}, Rank: 4,
		},
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"9 of 0","write":"w"}`: {
			State: receipt.Locks, Share: receipt.Share{ID: 3, Partitions: placement.Of(9)},
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
		`{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"x of 4"}`, `{"uid":"u1","owner":"Deployment/worker","id":3,"partitions":"0 of -1"}`,
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

func TestAReceiptOfAnotherPodSaysNothing(t *testing.T) {
	for _, text := range []string{
		`{"uid":"u2","owner":"Deployment/worker","id":3,"write":"w"}`, `{"uid":"u1","owner":"Deployment/other","id":3,"write":"w"}`,
		`{"uid":"u1","owner":"Deployment/other","id":3,"gaveUp":true}`, `{"uid":"u1","owner":"Deployment/other","id":"3"}`,
		`{"uid":"u1","owner":"Deployment/other","id":-1}`, `{"uid":"u1","owner":"Deployment/other","id":3,"partitions":"x of 4"}`,
	} {
		if r, err := receipt.Of(pod(text, "3"), owner); err != nil || r.State != receipt.None || r.LocksSlot(3) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	if r, err := receipt.Of(&metav1.PartialObjectMetadata{}, owner); err != nil || r.State != receipt.None || !r.Share.Empty() {
		t.Errorf("no receipt: %+v, %v", r, err)
	}
}

func TestWhatAPodSaysToWhicheverOwner(t *testing.T) {
	for text, want := range map[string]receipt.State{
		`{"uid":"u1","owner":"Deployment/other","id":3,"write":"w"}`: receipt.Locks, `{"uid":"u1","owner":"Deployment/other","write":"w"}`: receipt.Waits,
		`{"uid":"u1","owner":"Deployment/other","id":-1}`: receipt.Unreadable, `{"owner":"Deployment/other","id":3}`: receipt.Unreadable, `{`: receipt.Unreadable,
		`{"uid":"u2","owner":"Deployment/other","id":3,"write":"w"}`: receipt.None, `{"uid":"u2","owner":"Deployment/other","id":-1}`: receipt.None,
	} {
		r, err := receipt.Anywhere(pod(text, "3"))
		if locks := want == receipt.Locks || want == receipt.Unreadable; r.State != want || r.LocksSlot(3) != locks || (err != nil) != (want == receipt.Unreadable) {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	if r, err := receipt.Anywhere(&metav1.PartialObjectMetadata{}); err != nil || r.State != receipt.None || !r.Share.Empty() {
		t.Errorf("no receipt: %+v, %v", r, err)
	}
}

// Ids, numbers of partitions and tokens have limits. A receipt or proposal beyond the first two is damaged, and a token that makes no sense says nothing.
func TestLimits(t *testing.T) {
	for id, of := range map[int]int{0: 0, receipt.MaxID: placement.MaxCount} {
		for _, more := range []int{0, 1} {
			for _, text := range []string{
				fmt.Sprintf(`{"uid":"u1","owner":"Deployment/worker","id":%d}`, id+more*(receipt.MaxID+1)),
				fmt.Sprintf(`{"uid":"u1","owner":"Deployment/worker","id":1,"partitions":"0 of %d"}`, of+more*(placement.MaxCount+1)),
			} {
				if _, err := receipt.Parse(text); (err != nil) != (more > 0) {
					t.Errorf("%s: %v", text, err)
				}
			}
			const start = `{"uid":"u1","owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"},"count":`
			for _, text := range []string{
				fmt.Sprintf(start+"%d}", id+(receipt.MaxID+2)*more), fmt.Sprintf(start+"%d}", min(id, 1)*(receipt.MaxID+1)+(receipt.MaxID+2)*more),
				fmt.Sprintf(start+`1,"id":%d}`, id+(receipt.MaxID+1)*more), fmt.Sprintf(start+`1,"id":1,"of":%d}`, of+(placement.MaxCount+1)*more),
			} {
				if _, err := receipt.ParseProposal(text); (err != nil) != (more > 0) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
	for number, sane := range map[int]bool{-1: false, 1: true, receipt.MaxNumber: true, receipt.MaxNumber + 1: false} {
		if _, err := receipt.Parse(fmt.Sprintf(`{"uid":"u1","owner":"Deployment/worker","id":1,"number":%d}`, number)); (err == nil) != sane {
			t.Errorf("number %d: %v", number, err)
		}
	}
	for token, sane := range map[int64]bool{-1: false, 0: false, 1: true, 1<<53 + 1: true, math.MaxInt64: true} {
		const start = `{"uid":"u1","owner":"Deployment/worker","id":1,"partitions":"0-3 of 4"`
		r, err := receipt.Parse(fmt.Sprintf(start+`,"token":%d,"tokens":{"0":1}}`, token))
		if err != nil || (r.Token == token && token != 0) != sane || len(r.Tokens) == 1 != sane {
			t.Errorf("token %d: %+v, %v", token, r, err)
		}
		r, err = receipt.Parse(fmt.Sprintf(start+`,"token":1,"tokens":{"0":%d}}`, token))
		if err != nil || len(r.Tokens) == 1 != sane {
			t.Errorf("token %d of a partition: %+v, %v", token, r, err)
		}
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

func TestShares(t *testing.T) {
	none, two, same := receipt.Nothing(), receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(1, 2)}, receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(2, 1)}
	other := receipt.Share{ID: 3, Of: 8, Partitions: placement.Of(1)}
	part := receipt.Share{ID: 2, Of: 4, Partitions: placement.Of(2)}
	if !none.Empty() || two.Empty() || !two.Equal(same) {
		t.Error("a share is empty without a slot, and equal to itself")
	}
	for _, differs := range []receipt.Share{{ID: 3, Of: 8, Partitions: two.Partitions}, {ID: 2, Of: 4, Partitions: two.Partitions}, {ID: 2, Of: 8, Partitions: placement.Of(1)}} {
		if two.Equal(differs) {
			t.Errorf("%+v is equal to %+v", two, differs)
		}
	}
	if !two.Covers(none) || !two.Covers(part) || part.Covers(two) || two.Covers(other) {
		t.Error("a share covers nothing at all, and less of the same slot, and no more")
	}
	if got := two.Within(part); !got.Equal(part) {
		t.Errorf("what of %+v is in %+v is %+v", two, part, got)
	}
	if got := two.Within(other); !got.Empty() {
		t.Errorf("what of %+v is in %+v is %+v", two, other, got)
	}
}

func TestWhatAReceiptLocks(t *testing.T) {
	all := placement.Between(0, 8)
	for _, r := range []receipt.Receipt{
		{}, {State: receipt.None, Share: receipt.Nothing()}, {State: receipt.Waits, Share: receipt.Nothing()}, {State: receipt.GaveUp, Share: receipt.Nothing()},
	} {
		if r.Slot() != receipt.NoID || r.LocksSlot(0) || r.LocksSlot(receipt.NoID) || !r.LocksOf(all).Empty() {
			t.Errorf("%+v locks something", r)
		}
	}
	r := receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(1, 2)}}
	if r.Slot() != 2 || !r.LocksSlot(2) || r.LocksSlot(1) || !r.LocksOf(placement.Of(2, 3)).Equal(placement.Of(2)) {
		t.Errorf("%+v does not lock slot 2 and partitions 1 and 2 alone", r)
	}
	r.Number = 1026
	if !r.LocksNumber(1026) || r.LocksNumber(1025) || (receipt.Receipt{State: receipt.Locks}).LocksNumber(0) || (receipt.Receipt{Number: 1026}).LocksNumber(1026) {
		t.Errorf("%+v does not lock number 1026 alone", r)
	}
	for rank, want := range map[int]int{0: 0, 1: 0, 2: 1, 4: 3} {
		if got := (receipt.Receipt{Rank: rank}).Failures(); got != want {
			t.Errorf("rank %d says %d failures, want %d", rank, got, want)
		}
	}
}

// Each is accepted by Kubernetes' helper for resourceVersions, or was given by some server. A text that is only nearly a number could hide that two servers
// count differently.
func TestATokenIsAWholeNumber(t *testing.T) {
	for version, want := range map[string]int64{"1": 1, "9007199254740993": 1<<53 + 1, "1753647547040015001": 1753647547040015001, "9223372036854775807": math.MaxInt64} {
		if token, err := receipt.TokenOf(version); token != want || err != nil {
			t.Errorf("%s: %d, %v", version, token, err)
		}
	}
	for _, version := range []string{"", "0", "-1", "+5", "007", "1.5", "1e3", "0x10", " 1", "9223372036854775808", "18446744073709551615", "340282366920938463463374607431768211456"} {
		if token, err := receipt.TokenOf(version); token != 0 || !errors.Is(err, receipt.ErrNoToken) || !strings.Contains(err.Error(), strconv.Quote(version)) {
			t.Errorf("%q: %d, %v", version, token, err)
		}
	}
}
