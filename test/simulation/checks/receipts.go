package checks

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// written is what the judge knows of the receipts that the processes of one pod wrote.
type written struct {
	texts map[string]bool
	sent  int // the number of the last request
	// slot is the slot that the receipt locks, receipt.NoID for none, and since the number of the write since which it has done so without a
	// break.
	slot  int
	since int64
}

// words are what others read of a pod's lock.
type words struct{ receipt, id, owner string }

func wordsOf(v *server.Version) words {
	labels := v.Labels()
	return words{object.Annotation(v.Object, receipt.Key), labels[receipt.IDLabel], labels[receipt.OwnerLabel]}
}

// shows reports whether a pod has a receipt that others can find.
func shows(v *server.Version) bool {
	is := wordsOf(v)
	r, err := receipt.Parse(is.receipt)
	return err == nil && (r.State != receipt.Locks || is.id == strconv.Itoa(r.Share.ID) && is.owner == assignment.OwnerLabelValue(r.Owner))
}

// checkWritten takes in what happens to the receipt of a pod. Each write of its processes has bytes that were never there, and none comes
// after a later one.
func (j *Judge) checkWritten(v *server.Version) {
	if v.Kind.Resource != object.Pods || !v.Exists() || !v.Before.Exists() {
		return
	}
	if object.UID(v.Object) != object.UID(v.Before.Object) || wordsOf(v) == wordsOf(v.Before) {
		return
	}
	pod, by := world.PodKey(v.Name, object.UID(v.Object)), j.w.Serving
	if by != nil && by.Controls && world.IsAgent(v.Object) && j.w.Server.Mutates != nil {
		by = nil // admission changes more than what the controller tells the pod
	}
	if by != nil && !mayWrite(by, v) {
		j.reportf(receipts, "%s changed the receipt of %s", by.ID, v.Name)
	}
	lost := j.changed[pod] // a late write may find what it replaces again (A3)
	if by != nil && by.Controls && j.w.Server.Mutates != nil {
		lost = true // admission changes what it writes, be it the count alone
	}
	j.noteChanged(v, by)
	if by == nil {
		j.progress.noteHurt(v)
		return
	}
	known := j.written[pod]
	if known == nil {
		known = &written{texts: map[string]bool{}, slot: receipt.NoID}
		j.written[pod] = known
	}
	j.noteWithdrawn(v, pod, lost)
	j.checkBegun(v, lost)
	text := wordsOf(v).receipt
	switch {
	case lost || text == "":
	case known.texts[text]:
		j.reportf(receipts, "a receipt of %s comes back: %s", v.Name, text)
	case j.w.Sent < known.sent:
		j.reportf(receipts, "%s was accepted after a later write of %s", text, v.Name)
	}
	known.texts[text], known.sent = true, j.w.Sent
}

// noteWithdrawn takes in since when a receipt of a pod has locked a slot, and reports one that let go of the slot for another pod that locked it
// later: the first had noted that it holds the slot, so a pod that locks it too came later. A strict pod notes nothing.
func (j *Judge) noteWithdrawn(v *server.Version, pod string, lost bool) {
	known, now := j.written[pod], j.receipt(v)
	if now.State == receipt.Locks && shows(v) {
		if known.slot != now.Share.ID || lost {
			known.slot, known.since = now.Share.ID, v.RV
		}
		return
	}
	slot, since := known.slot, known.since
	known.slot = receipt.NoID
	if slot == receipt.NoID || lost || now.State != receipt.Waits || j.receipt(v.Before).Token == 0 {
		return
	}
	var later []string
	for _, other := range j.lockers(slot) {
		by := j.written[world.PodKey(other.Name, object.UID(other.Object))]
		switch {
		case other.Name == v.Name:
		case by == nil || by.slot != slot || by.since < since || j.changed[world.PodKey(other.Name, object.UID(other.Object))]:
			return
		default:
			later = append(later, other.Name)
		}
	}
	if len(later) > 0 {
		j.reportf(density, "%s, which has noted slot %d, lets go of it for %v, which locked it later", v.Name, slot, later)
	}
}

// receipt is that of a pod for the owner.
func (j *Judge) receipt(pod *server.Version) receipt.Receipt { r, _ := j.readReceipt(pod); return r }

// kept is the receipt by which a pod works. One that the controller tells its id may keep that of a former owner.
func (j *Judge) kept(pod *server.Version) receipt.Receipt {
	if object.At(pod.Object, object.Metadata, "labels")[receipt.AssignLabel] == nil {
		return j.receipt(pod)
	}
	r, _ := receipt.Anywhere(metaOf(pod))
	return r
}

// readReceipt reads the receipt of a pod for the owner. One that cannot be read locks, too.
func (j *Judge) readReceipt(pod *server.Version) (receipt.Receipt, error) {
	is, known := j.read[pod]
	if !known {
		is.receipt, is.err = receipt.Of(metaOf(pod), object.KindOf(j.w.Profile.Resource).Name+"/"+world.OwnerName)
		j.read[pod] = is
	}
	return is.receipt, is.err
}

// lockers are the live pods whose receipt locks the slot.
func (j *Judge) lockers(id int) (pods []*server.Version) {
	for _, v := range j.w.Server.Objects(object.Pods) {
		if !object.Ended(v.Object) && j.receipt(v).LocksSlot(id) {
			pods = append(pods, v)
		}
	}
	return pods
}

// metaOf is a pod's metadata as idalloc reads it.
func metaOf(v *server.Version) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: types.UID(object.UID(v.Object)), Labels: v.Labels(), Annotations: v.Annotations()}
}
