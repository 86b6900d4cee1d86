package conformance_test

import (
	"fmt"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/conformance"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// recording is a Recorder and what it reported.
type recording struct {
	conformance.Recorder

	refused, assumed []string
	version          int64
}

func record() *recording {
	r := &recording{version: 10}
	r.Refused = func(_ conformance.Step, err error) { r.refused = append(r.refused, conformance.Rule(err)) }
	r.Assumed = func(_ conformance.Step, err error) { r.assumed = append(r.assumed, conformance.Rule(err)) }
	return r
}

// pod stores a version of pod a, with this receipt and the labels of id 0, and returns it.
func (r *recording) pod(text string, labels bool, w conformance.Write) *metav1.ObjectMeta {
	r.version++
	m := &metav1.ObjectMeta{Namespace: "prod", Name: "a", UID: "a", ResourceVersion: strconv.FormatInt(r.version, 10), Annotations: map[string]string{}}
	if text != "" {
		m.Annotations[receipt.Key] = text
	}
	if labels {
		m.Labels = map[string]string{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: "0"}
	}
	r.Pod(m, w)
	return m
}

// own is a write of the pod's process that tests the receipt.
func own(text string) conformance.Write {
	return conformance.Write{By: conformance.Process, Process: "1", Patch: conformance.Patch{Text: true, Receipt: text}}
}

func lockOf(uid types.UID, write string) string {
	return fmt.Sprintf(`{"uid":%q,"owner":"Deployment/worker","id":0,"write":%q}`, uid, write)
}

func gaveUp(write string) string {
	return fmt.Sprintf(`{"uid":"a","owner":"Deployment/worker","write":%q}`, write)
}

// Admission removes the labels of a lock in the write that sets it. The pod may give up that lock, and take again.
func TestALockThatAdmissionStrippedMayBeGivenUp(t *testing.T) {
	r := record()
	r.pod("", false, conformance.Write{})
	r.pod(lockOf("a", "one"), false, own(lockOf("a", "one")))
	r.pod(gaveUp("two"), false, own(gaveUp("two")))
	r.pod(lockOf("a", "three"), true, own(lockOf("a", "three")))
	if len(r.refused) > 0 {
		t.Errorf("refused: %q", r.refused)
	}
}

// Another writer removes a lock between T3 and the start of the work. That breaks A3, and the pod does not know it yet.
func TestALockRemovedBeforeTheWorkBeginsBreaksA3(t *testing.T) {
	r := record()
	r.pod("", false, conformance.Write{})
	pod := r.pod(lockOf("a", "one"), true, own(lockOf("a", "one")))
	token := r.version
	r.Listed(conformance.List{By: "a", Process: "1", Version: token, Newest: true, Pods: []*metav1.ObjectMeta{pod}})
	r.pod("", true, conformance.Write{})
	r.Works("a", map[string]int64{conformance.Slot("prod", "deployment.worker", 0): token}, 0)
	if len(r.refused) > 0 || len(r.assumed) == 0 {
		t.Errorf("refused: %q, broken assumptions: %q", r.refused, r.assumed)
	}
}

// Another writer removes a lock while the answer to T3 is on its way. That breaks A3 as if the answer had come before.
func TestALockRemovedWhileT3IsAnsweredBreaksA3(t *testing.T) {
	r := record()
	r.pod("", false, conformance.Write{})
	pod := r.pod(lockOf("a", "one"), true, own(lockOf("a", "one")))
	token := r.version
	r.pod("", true, conformance.Write{})
	r.Listed(conformance.List{By: "a", Process: "1", Version: token, Pods: []*metav1.ObjectMeta{pod}})
	r.Works("a", map[string]int64{conformance.Slot("prod", "deployment.worker", 0): token}, 0)
	if len(r.refused) > 0 || len(r.assumed) == 0 {
		t.Errorf("refused: %q, broken assumptions: %q", r.refused, r.assumed)
	}
}

// The network repeats a write whose receipt another writer has removed. A receipt that locks nothing may come back that way.
func TestARepeatedWriteMayBringBackAReceiptWithoutLocks(t *testing.T) {
	r := record()
	r.pod("", false, conformance.Write{})
	r.pod(gaveUp("one"), false, own(gaveUp("one")))
	r.pod("", false, conformance.Write{})
	r.pod(gaveUp("one"), false, own(gaveUp("one")))
	r.pod(lockOf("a", "two"), true, own(lockOf("a", "two")))
	if len(r.refused) > 0 {
		t.Errorf("refused: %q", r.refused)
	}
	r.pod("", true, conformance.Write{})
	r.pod(lockOf("a", "two"), true, own(lockOf("a", "two")))
	if len(r.refused) == 0 {
		t.Error("a lock may come back, too")
	}
}

// A receipt that cannot be read locks everything. Still the pod may not have begun when it replaced the pod's own one.
func TestALockMadeUnreadableBeforeTheWorkBeginsBreaksA3(t *testing.T) {
	for name, listed := range map[string]bool{"after T3": true, "while T3 is answered": false} {
		t.Run(name, func(t *testing.T) {
			r := record()
			r.pod("", false, conformance.Write{})
			pod := r.pod(lockOf("a", "one"), true, own(lockOf("a", "one")))
			token := r.version
			list := func(newest bool) {
				r.Listed(conformance.List{By: "a", Process: "1", Version: token, Newest: newest, Pods: []*metav1.ObjectMeta{pod}})
			}
			if listed {
				list(true)
			}
			r.pod("null", true, conformance.Write{})
			if !listed {
				list(false)
			}
			r.Works("a", map[string]int64{conformance.Slot("prod", "deployment.worker", 0): token}, 0)
			if len(r.refused) > 0 || len(r.assumed) == 0 {
				t.Errorf("refused: %q, broken assumptions: %q", r.refused, r.assumed)
			}
		})
	}
}

// A pod whose lock was hidden keeps its token, although another pod had a higher one meanwhile.
func TestAPodKeepsItsTokenAfterItsLockWasHidden(t *testing.T) {
	r, id := record(), conformance.Slot("prod", "deployment.worker", 0)
	r.pod("", false, conformance.Write{})
	pod := r.pod(lockOf("a", "one"), true, own(lockOf("a", "one")))
	token := r.version
	r.Listed(conformance.List{By: "a", Process: "1", Version: token, Newest: true, Pods: []*metav1.ObjectMeta{pod}})
	r.Works("a", map[string]int64{id: token}, 0)
	r.pod(lockOf("a", "one"), false, conformance.Write{})

	other := &metav1.ObjectMeta{
		Namespace: "prod", Name: "b", UID: "b", ResourceVersion: "100", Labels: map[string]string{receipt.OwnerLabel: "deployment.worker", receipt.IDLabel: "0"},
		Annotations: map[string]string{receipt.Key: lockOf("b", "two")},
	}
	w := own(lockOf("b", "two"))
	w.Process = "2"
	r.Pod(other, w)
	r.Listed(conformance.List{By: "b", Process: "2", Version: 100, Newest: true, Pods: []*metav1.ObjectMeta{other}})
	r.Works("b", map[string]int64{id: 100}, 0)
	r.Works("b", nil, 0)
	r.Ended("b")

	r.Works("a", nil, 0)
	pod = r.pod(lockOf("a", "three"), true, own(lockOf("a", "three")))
	r.Listed(conformance.List{By: "a", Process: "1", Version: 200, Newest: true, Pods: []*metav1.ObjectMeta{pod}})
	r.Works("a", map[string]int64{id: token}, 0)
	if len(r.refused) > 0 {
		t.Errorf("refused: %q", r.refused)
	}
}
