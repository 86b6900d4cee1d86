package duty

import "github.com/idalloc/idalloc/pkg/allocator/receipt"

// Tenure is what a process knows of its own pod. Start makes it, and its methods return it with what came of a step.
type Tenure struct {
	// Known says that Lock stands on the pod: no write of this process is without an answer.
	Known bool
	// Lock is the receipt, as it was read or written last.
	Lock Lock
	// Renewed says that this process has written Lock since it read it (T2).
	Renewed bool
	// Listed says that the other receipts were listed after Lock was written (T3), and Surveyed that the other Leases were listed after that.
	Listed, Surveyed bool
	// Others is what these lock of Lock.
	Others Others
	// Working is where work may be under way: what was begun and has not stopped. A process that starts does not know, and says
	// Unsure: an earlier process may have left work on anything.
	Working receipt.Share
	Unsure  bool
	// Stopping says that the work on what Keep lacks was told to stop, and has not stopped.
	Stopping bool
	Keep     receipt.Share
	// CalledOff says that the stop is not needed any more.
	CalledOff bool
	// Doubts says that Lock is an earlier process's, and that another receipt may be withdrawn: its pod came later.
	Doubts bool
	// Strict says that a Lease locks beside the receipt, and Lease is what the own one locks, Nothing without one whose time runs.
	Strict bool
	Lease  receipt.Share
	// Loose says that it is not known what the own Lease says, or will. It protects nothing before it is written again.
	Loose bool
	// Late says that a write of the receipt may still arrive, or one of the map that names the pod.
	Late bool
	// Taken says that another pod has the Lease of the slot that Lock locks.
	Taken bool
}

// Start is the tenure of a process that starts.
func Start(strict bool) Tenure {
	return Tenure{Lock: Lock{Share: receipt.Nothing()}, Working: receipt.Nothing(), Keep: receipt.Nothing(), Unsure: true, Strict: strict, Lease: receipt.Nothing()}
}

// Read takes in a read of the own pod.
func (t Tenure) Read(lock Lock) Tenure {
	t = t.unconfirmed()
	t.Known, t.Lock = true, lock
	if t.Doubts = lock.State == receipt.Locks; t.Doubts && t.Unsure {
		t.Working = lock.Share
	}
	return t
}

// Wrote takes in that the API server accepted a receipt.
func (t Tenure) Wrote(lock Lock) Tenure {
	t.Doubts = t.Doubts && lock.State == t.Lock.State && lock.Share.Equal(t.Lock.Share)
	if !t.confirmed() || !t.Lock.Share.Covers(lock.Share) { // others have seen in every moment what stays locked, so T3 would show nothing new
		t = t.unconfirmed()
	}
	t.Renewed, t.Lock, t.Late, t.Taken = true, lock, false, false
	return t
}

// confirmed reports whether the pod has what Lock locks.
func (t Tenure) confirmed() bool {
	secured := !t.Strict || t.Surveyed && t.secured(t.Lock.Share)
	return t.Known && t.Renewed && t.Listed && secured && !t.Others.Any()
}

// Lost takes in that it is not known what stands on the pod: somebody else changed the receipt, it seems.
func (t Tenure) Lost() Tenure {
	t.Known = false
	return t
}

// Failed takes in that a write of the receipt failed, and whether it may arrive late. Nothing is confirmed before the next one.
func (t Tenure) Failed(late bool) Tenure {
	t.Late = t.Late || late
	return t.unconfirmed().Lost()
}

// Saw takes in a list of the other receipts.
func (t Tenure) Saw(others Others) Tenure {
	t.Listed, t.Surveyed, t.Others = true, false, others
	return t
}

// SawLeases takes in a list of the other Leases.
func (t Tenure) SawLeases(others Others) Tenure {
	t.Surveyed, t.Others = true, t.Others.And(others)
	return t
}

// Sure takes in that another receipt has stayed for so long that it is not being withdrawn.
func (t Tenure) Sure() Tenure {
	t.Doubts = false
	return t
}

// Begun takes in that work has begun on the share.
func (t Tenure) Begun(share receipt.Share) Tenure {
	t.Working = share
	return t
}

// Told takes in that the work was told to stop, except for that on the share.
func (t Tenure) Told(keep receipt.Share) Tenure {
	t.Stopping, t.Keep, t.CalledOff = true, keep, false
	return t
}

// Recalled takes in that the work was told that it need not stop any more.
func (t Tenure) Recalled() Tenure {
	t.CalledOff = true
	return t
}

// Stopped takes in that the work has stopped that was told to.
func (t Tenure) Stopped() Tenure {
	t.Working, t.Unsure = t.Keep, false
	return t.Resumed()
}

// Resumed takes in that the work has not stopped, and goes on.
func (t Tenure) Resumed() Tenure {
	t.Stopping, t.Keep, t.CalledOff = false, receipt.Nothing(), false
	return t
}

// Secured takes in what the own Lease says from now on. One that was not this pod's for a moment protects nothing before the next T2 and T3.
func (t Tenure) Secured(share receipt.Share) Tenure {
	if t.Lease.Empty() || t.Loose {
		t = t.unconfirmed()
	}
	t.Lease, t.Loose, t.Taken = share, false, false
	return t
}

// Unsecured takes in that a write of the own Lease, of the share, had no answer or was in vain.
func (t Tenure) Unsecured(share receipt.Share) Tenure {
	if t.Loose = true; t.Lease.Empty() {
		t.Lease = share
	}
	return t
}

// secured reports whether the own Lease locks the share.
func (t Tenure) secured(share receipt.Share) bool { return !t.Loose && t.Lease.Covers(share) }

// NotSecured takes in that another pod has the Lease that this one was to have.
func (t Tenure) NotSecured() Tenure {
	t.Lease, t.Loose, t.Taken = receipt.Nothing(), false, t.Lock.State == receipt.Locks
	return t
}

// Fenced takes in that the time of the own Lease is over. The work stops by itself, and the next step comes when it has. A stop under way is
// called off, and ends before the next work begins.
func (t Tenure) Fenced() Tenure {
	t.Lease, t.Loose, t.Working, t.Keep = receipt.Nothing(), false, receipt.Nothing(), receipt.Nothing()
	return t.unconfirmed()
}

// unconfirmed has the lock need T2 and T3 again.
func (t Tenure) unconfirmed() Tenure {
	t.Renewed, t.Listed, t.Surveyed, t.Others = false, false, false, Others{}
	return t
}
