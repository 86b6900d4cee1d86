package conformance

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is an answer to a list of pods.
type List struct {
	// By is the UID of the pod whose process asked, empty for a controller. Process is that process.
	By, Process string
	Version     int64
	// Newest: nothing was stored since the list. Slots: the list asked only for receipts of some slots.
	Newest, Slots bool
	Pods          []*metav1.ObjectMeta
}

// Listed records an answer to a list. It is a T3 of all things on which it shows only one lock.
func (r *Recorder) Listed(l List) {
	if l.By != "" {
		r.Asks(l.By, l.Process)
	}
	receipts, locks := r.receipts(l.Pods)
	for _, pod := range l.Pods {
		is, uid := receipts[pod], string(pod.UID)
		if r.pods[uid] == nil || l.By != "" && l.By != uid {
			continue
		}
		id := r.pods[uid].receipt.ID
		if bytesOf(id) != is.ID {
			id = is.ID
		}
		others := func(other Receipt) bool { return other.Pod != uid && (!other.Strict || !is.Strict) }
		for _, x := range is.Locks {
			if l.Slots && every(x) != "" || !l.Newest && slices.ContainsFunc(slices.Concat(locks[x], locks[every(x)]), others) {
				continue
			}
			s := Step{Do: T3, Pod: uid, Thing: x, Showed: id, Version: l.Version, Former: !l.Newest}
			_ = r.try(s)
			if known := r.seen[uid]; !r.pods[uid].gated && known.lost == is.ID && l.Version < known.lostAt {
				r.lost(r.pods[uid], s) // while the answer was on its way
			}
		}
	}
}

// receipts returns the receipts of live pods, and those that lock each thing.
func (r *Recorder) receipts(pods []*metav1.ObjectMeta) (of map[*metav1.ObjectMeta]Receipt, locks map[string][]Receipt) {
	of, locks = map[*metav1.ObjectMeta]Receipt{}, map[string][]Receipt{}
	for _, pod := range pods {
		if p := r.pods[string(pod.UID)]; p == nil || p.gone {
			continue
		}
		is := ReceiptOf(pod)
		of[pod] = is
		for _, x := range is.Locks {
			locks[x] = append(locks[x], is)
		}
	}
	return of, locks
}

// ListedLeases records that a process of a pod got a list of Leases.
func (r *Recorder) ListedLeases(uid string, at time.Duration) {
	if p := r.pods[uid]; p != nil {
		for _, x := range p.receipt.Locks {
			_ = r.try(Step{Do: ShowsLeases, Pod: uid, Thing: x, At: at})
		}
	}
}

// Lease records a version of a Lease: its holder, what it locks, and when it expires. holder is empty if the Lease was released.
func (r *Recorder) Lease(name, holder string, by Author, locks []string, at, until time.Duration) {
	if holder != "" {
		r.of(holder, false)
	}
	slot := ""
	if i := slices.IndexFunc(locks, func(x string) bool { return every(x) == "" }); i >= 0 {
		slot = locks[i]
	}
	s := Step{Do: Secure, Pod: holder, Lease: name, Receipt: Receipt{Locks: locks}, Thing: slot, At: at, Until: until}
	was := r.changed[name]
	if r.changed == nil {
		r.changed = map[string]bool{}
	}
	r.changed[name] = by == Another
	if before := r.leases[name].holder; before != nil && before.uid != holder && (was || by == Another && at < r.leases[name].until) {
		r.expose(before, Step{Do: Secure, Pod: before.uid, Lease: name, Receipt: s.Receipt}, fmt.Errorf("%s of pod %s: %w: A3: a Lease whose time is not over stays", Secure, before.uid, ErrRefused))
		r.do(s, r.pods[holder])
		return
	}
	r.take(s)
}

// Offer records that the receipts may have been listed at this moment.
func (r *Recorder) Offer(version int64, things ...string) {
	for _, x := range things {
		for _, p := range r.lock[x] {
			_ = r.try(Step{Do: T3, Pod: p.uid, Thing: x, Version: version})
		}
	}
}

// ForgetLease drops a Lease, because its changes were not seen for some time.
func (r *Recorder) ForgetLease(name string) { delete(r.leases, name) }
