package duty

import (
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Part is some of the work of a process.
type Part struct {
	// All: all work under the id. Otherwise only that on Partitions.
	All        bool
	Partitions placement.Set
}

// Empty reports whether p contains no work.
func (p Part) Empty() bool { return !p.All && p.Partitions.Empty() }

// And returns what is in p or in q.
func (p Part) And(q Part) Part {
	return Part{All: p.All || q.All, Partitions: p.Partitions.Union(q.Partitions)}
}

// Minus returns what is in p and not in q.
func (p Part) Minus(q Part) Part {
	if q.All {
		return Part{}
	}
	return Part{All: p.All, Partitions: p.Partitions.Minus(q.Partitions)}
}

// LockState is what a process knows about the locks of its own pod. Each method returns the state after one step.
type LockState struct {
	// Known: the pod has Lock, and every write of this process was answered.
	Known bool
	// Lock is the receipt as last read or written.
	Lock Lock
	// Renewed: this process has written Lock since it last read it (T2).
	Renewed bool
	// Listed: the other receipts were listed after Lock was written (T3). Surveyed: the other Leases were listed after that.
	Listed, Surveyed bool
	// Others is the part of Lock that other pods lock, according to these lists.
	Others Others
	// Unbroken: T3 has shown no other holder of Working, and the receipt has locked Working ever since. Another pod that locks it came later, and
	// withdraws.
	Unbroken bool
	// Working is the share on which work may be under way: begun and not stopped, by this or an earlier process of the pod.
	Working receipt.Share
	// Stopping is the work that is being stopped, and CalledOff the part of it that need not stop any more.
	Stopping, CalledOff Part
	// Doubts: an earlier process wrote Lock, and another pod that locks the same may have come later and may withdraw.
	Doubts bool
	// Strict: a Lease also locks. Lease is the share that this pod's unexpired Lease locks, or Nothing.
	Strict bool
	Lease  receipt.Share
	// Unsure: the content of this pod's Lease is unknown. It protects nothing until it is written again.
	Unsure bool
	// Late: a write of the receipt, or of a map that names the pod, may still arrive.
	Late bool
	// Taken: another pod has the Lease of the slot that Lock locks, and keeps it.
	Taken bool
}

// Start returns the lock state of a new process. left is the share on which an earlier process of the pod may still work.
func Start(strict bool, left receipt.Share) LockState {
	return LockState{Lock: Lock{Share: receipt.Nothing()}, Working: left, Strict: strict, Lease: receipt.Nothing()}
}

// Read returns the state after a read of this pod.
func (t LockState) Read(lock Lock) LockState {
	t = t.unconfirmed()
	t.Known, t.Lock, t.Doubts = true, lock, lock.State == receipt.Locks
	return t
}

// Wrote returns the state after the API server accepted a receipt.
func (t LockState) Wrote(lock Lock) LockState {
	t.Doubts = t.Doubts && lock.State == t.Lock.State && lock.Share.Equal(t.Lock.Share)
	if sure := t.confirmed(lock.Share); !sure || !t.Lock.Share.Covers(lock.Share) { // what stays locked was locked all the time, so T3 would show nothing new
		unbroken := t.Unbroken || sure
		t = t.unconfirmed()
		t.Unbroken = unbroken
	}
	t.Others = Others{}
	t.Renewed, t.Lock, t.Late, t.Taken = true, lock, false, false
	return t
}

// Confirms reports whether work on the share may begin: Lock locks it, and T3 has shown that no other pod does.
func (t LockState) Confirms(share receipt.Share) bool {
	return t.Lock.Share.Covers(share) && t.confirmed(share)
}

// confirmed reports whether T3 has shown that no other pod locks the share, and whether Lock covers all work of the pod. T3 does not cover other work that
// an earlier process left.
func (t LockState) confirmed(share receipt.Share) bool {
	secured, others := !t.Strict || t.Surveyed && t.hasLease(t.Lock.Share), t.Others.Slot || !t.Others.Partitions.Intersect(share.Partitions).Empty()
	return t.Known && t.Renewed && t.Listed && secured && !others && t.Lock.Share.Covers(t.Working)
}

// Lost returns the state after another program probably changed the receipt: the pod must be read.
func (t LockState) Lost() LockState {
	t.Known = false
	return t
}

// Failed returns the state after a write of the receipt failed. late: the write may still arrive. Nothing is confirmed before the next write.
func (t LockState) Failed(late bool) LockState {
	t.Late = t.Late || late
	return t.unconfirmed().Lost()
}

// Saw returns the state after a list of the other receipts.
func (t LockState) Saw(others Others) LockState {
	t.Listed, t.Surveyed, t.Others = true, false, t.cameFirst(others)
	return t
}

// SawLeases returns the state after a list of the other Leases.
func (t LockState) SawLeases(others Others) LockState {
	t.Surveyed, t.Others = true, t.Others.And(t.cameFirst(others))
	return t
}

// cameFirst returns the part of others, without what this pod has worked on since before they came.
func (t LockState) cameFirst(others Others) Others {
	if t.Unbroken && !t.Working.Empty() {
		others = Others{Partitions: others.Partitions.Minus(t.Working.Partitions)}
	}
	return others
}

// Sure returns the state after another receipt has stayed so long that its pod will not withdraw it.
func (t LockState) Sure() LockState {
	t.Doubts = false
	return t
}

// Begun returns the state after work has begun on the share. Work that an earlier process left elsewhere still runs.
func (t LockState) Begun(share receipt.Share) LockState {
	if t.Working.ID == share.ID {
		share.Partitions = share.Partitions.Union(t.Working.Partitions)
	}
	t.Working = share
	return t
}

// Told returns the state after the work was told to stop, except for that on keep.
func (t LockState) Told(keep receipt.Share) LockState {
	if t.Stopping = t.Stopping.And(t.beyond(keep)); t.Stopping.All {
		t.Stopping, t.CalledOff = Part{All: true}, Part{}
	}
	return t
}

// beyond returns the work outside the share.
func (t LockState) beyond(share receipt.Share) Part {
	if t.Working.Empty() || t.Working.ID == share.ID {
		return Part{Partitions: t.Working.Partitions.Minus(share.Partitions)}
	}
	return Part{All: true}
}

// Recalled returns the state after a stop of this part was called off.
func (t LockState) Recalled(part Part) LockState {
	t.CalledOff = t.CalledOff.And(part)
	return t
}

// Stopped returns the state after this part of the work has stopped. The rest may still be stopping.
func (t LockState) Stopped(part Part) LockState {
	if t.Working.Partitions = t.Working.Partitions.Minus(part.Partitions); part.All {
		t.Working = receipt.Nothing()
	}
	return t.Resumed(part)
}

// Resumed returns the state after a stop ended without stopping this part.
func (t LockState) Resumed(part Part) LockState {
	t.Stopping, t.CalledOff = t.Stopping.Minus(part), t.CalledOff.Minus(part)
	return t
}

// HasLease returns the state after a write of this pod's Lease, which now covers the share. If another pod may have had it meanwhile, the Lease protects
// nothing before the next T2 and T3.
func (t LockState) HasLease(share receipt.Share) LockState {
	if t.Lease.Empty() || t.Unsure {
		t = t.unconfirmed()
	}
	t.Lease, t.Unsure, t.Taken = share, false, false
	return t
}

// MayHaveLease returns the state after a write of this pod's Lease for the share got no answer or was changed.
func (t LockState) MayHaveLease(share receipt.Share) LockState {
	if t.Unsure = true; t.Lease.Empty() {
		t.Lease = share
	}
	return t
}

// hasLease reports whether this pod's Lease locks the share.
func (t LockState) hasLease(share receipt.Share) bool { return !t.Unsure && t.Lease.Covers(share) }

// LeaseTaken returns the state after another pod was found to have the Lease that this pod needs. If this pod had noted the slot before it became strict,
// the other pod came later and withdraws.
func (t LockState) LeaseTaken() LockState {
	withdraws := t.Doubts && t.Lock.Held.Slot
	t.Lease, t.Unsure, t.Taken = receipt.Nothing(), false, t.Lock.State == receipt.Locks && !withdraws
	return t
}

// Fenced returns the state after this pod's Lease has expired. The work stops by itself, and the next step waits for that. A stop under way is called off,
// and ends before new work begins.
func (t LockState) Fenced() LockState {
	t.Lease, t.Unsure, t.Working = receipt.Nothing(), false, receipt.Nothing()
	return t.unconfirmed()
}

// unconfirmed returns the state in which the lock needs T2 and T3 again.
func (t LockState) unconfirmed() LockState {
	t.Unbroken, t.Renewed, t.Listed, t.Surveyed, t.Others = false, false, false, false, Others{}
	return t
}
