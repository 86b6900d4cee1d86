package allocator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
)

// leaving returns a strict pod that is being deleted. Its deletionTimestamp is a clock's that this process does not believe.
func leaving(uid string, grace time.Duration) plan.Pod {
	return plan.Pod{
		Name: "pod-" + uid, UID: uid, Terminating: true, Grace: grace, Deadline: time.Unix(1, 0), Receipt: &assignment.Receipt{FenceAfter: time.Minute},
	}
}

func TestAPodIsLostWhenThisProcessHasKnownForLongEnough(t *testing.T) {
	c := &handClock{at: time.Hour}
	d := &departures{now: c.now}
	if _, ok := d.next(); ok {
		t.Error("a pod is to be lost before one was seen")
	}
	pods := []plan.Pod{leaving("a", 30*time.Second)}
	d.mark(pods)
	if in, ok := d.next(); pods[0].Lost || !ok || in != 40*time.Second {
		t.Errorf("at first sight: lost %t, in %s, %t; want in 40s", pods[0].Lost, in, ok)
	}
	c.at += 40*time.Second - 1
	if d.mark(pods); pods[0].Lost {
		t.Error("the pod is lost before the time")
	}
	c.at++
	if in, ok := d.next(); !ok || in != 0 {
		t.Errorf("the next is lost in %s, %t, want now", in, ok)
	}
	if d.mark(pods); !pods[0].Lost {
		t.Error("the pod is not lost")
	}
	if in, ok := d.next(); ok {
		t.Errorf("the next is lost in %s, but the only one was counted", in)
	}
}

func TestTheNextLostPodIsTheOneWithTheLeastTimeLeft(t *testing.T) {
	c := &handClock{at: time.Hour}
	d := &departures{now: c.now}
	ends := plan.Pod{Name: "ends", UID: "ends", Terminating: true}
	stays := plan.Pod{Name: "stays", UID: "stays", Receipt: &assignment.Receipt{FenceAfter: time.Minute}}
	d.mark([]plan.Pod{leaving("late", time.Minute), leaving("soon", 5*time.Second), ends, stays})
	if in, ok := d.next(); !ok || in != 15*time.Second {
		t.Errorf("the next is lost in %s, %t, want 15s", in, ok)
	}
}

// kubectl delete with a shorter grace period may come after the first deletion.
func TestAShorterGracePeriodCountsFromTheFirstSight(t *testing.T) {
	c := &handClock{at: time.Hour}
	d := &departures{now: c.now}
	d.note(leaving("a", time.Hour))
	c.at += 20 * time.Second
	d.note(leaving("a", 5*time.Second))
	if !d.lost("a") {
		t.Error("the pod is not lost")
	}
}

func TestAPodThatIsGoneIsForgotten(t *testing.T) {
	c := &handClock{at: time.Hour}
	d := &departures{now: c.now}
	d.mark([]plan.Pod{leaving("a", 0), leaving("b", time.Minute)})
	d.forget([]plan.Pod{leaving("b", time.Minute)})
	if in, ok := d.next(); !ok || in != 70*time.Second {
		t.Errorf("the next is lost in %s, %t, want that of b in 70s", in, ok)
	}
}

// A pod that is deleted shows it by its deletionTimestamp, which a stream tells before any list.
func TestAPodThatAStreamTellsOfIsLostInTime(t *testing.T) {
	c := &handClock{at: time.Hour}
	d := &departures{now: c.now}
	owner := owning(nil)
	grace := int64(30)
	pod := func(uid string, deleted bool) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
		r := assignment.Receipt{UID: uid, Owner: owner.String(), ID: 0, Epoch: 9, FenceAfter: time.Minute}
		o.Annotations = map[string]string{assignment.ReceiptKey: r.Encode()}
		if deleted {
			o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, &grace
		}
		return o
	}
	d.hearOf(owner, noon, pod("stays", false))
	d.hearOf(owner, noon, pod("leaves", true))
	if in, ok := d.next(); !ok || in != 40*time.Second {
		t.Errorf("the next is lost in %s, %t, want 40s", in, ok)
	}
	c.at += 40 * time.Second
	if d.lost("stays") || d.lost("unheard of") || !d.lost("leaves") {
		t.Errorf("lost: %t, %t and %t, want the last one", d.lost("stays"), d.lost("unheard of"), d.lost("leaves"))
	}
	if _, ok := d.lostIn("unheard of"); ok {
		t.Error("a pod that is not being deleted is to be lost")
	}
}
