package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind says what is wrong.
type Kind string

// The kinds of findings.
const (
	// HeldTwice: the receipts of two live pods lock one id. From outside nobody can tell which of them acts under it.
	// Do: the one whose receipt was written later withdraws by itself within seconds. If both stay, ask both programs, and delete the pod that does not act
	// under the id, or both.
	HeldTwice Kind = "heldTwice"
	// HeldByDead: the map gives the id to a pod that is gone, Succeeded or Failed.
	// Do: nothing for ten seconds: a pod that waits takes the slot, or else a pod with an id takes the name out. `gc` does it now.
	HeldByDead Kind = "dead"
	// Unheld: nobody has the id while a live pod waits, possibly one that gave its slot up for another pod.
	// Do: give a pod that starts time (`--wait=1m`), then read idalloc's log in the pod that the sentence names. If that pod gave its slot up, the new
	// revision does not keep the id: repair the revision or undo it.
	Unheld Kind = "unheld"
	// Damaged: an annotation of idalloc's that somebody else wrote cannot be read (the sentence quotes it), or a pod's labels hide its receipt. On the
	// workload it counts as absent; a receipt locks the id of its label and every partition.
	// Do: the pods write it again; see [somebody undoes what the pods write](operations.md#somebody-undoes-what-the-pods-write).
	Damaged Kind = "damaged"
	// Changed: somebody else has removed the assignment, or who owns which partitions, and no pod has written it again yet. Holders keep their ids.
	// Do: the pods write it again; see [somebody undoes what the pods write](operations.md#somebody-undoes-what-the-pods-write).
	Changed Kind = "changed"
	// Mismatch: a pod's receipt and the map do not agree, or a live pod has not locked the id that the map gives to it: for 15 seconds, or for a minute if
	// its program is not known to run.
	// Do: the next pod that plans puts it right within seconds; otherwise the sentence says what to do.
	Mismatch Kind = "mismatch"
	// OtherOwner: a pod of the workload has a receipt for another workload.
	// Do: nothing for seconds, because the pod stops its work there and claims an id here. If it stays, read its log, and delete it; perhaps its Role does not permit this workload.
	OtherOwner Kind = "otherOwner"
	// Ungated: a pod has the label `idalloc.dev/assign: controller` and no scheduling gate, so its program runs without an id.
	// Do: find out with `kubectl idalloc check` whether the policy is in force, and delete the pod.
	Ungated Kind = "ungated"
	// Foreign: a pod that is not the workload's locks an id of it: somebody relabelled it, or somebody else's pod has a receipt for this workload. Nobody
	// else gets the id as long as the pod lives.
	// Do: see who made or relabelled the pod, and delete it when nothing acts in it any more.
	Foreign Kind = "foreign"
	// Waits: a pod waits, live pods have all ids, and none of them ends.
	// Do: delete the pod that the sentence names, or another one that is not needed.
	Waits Kind = "waits"
	// NotStopped: for six minutes or longer a pod has gone on with work that it was told to stop, because another pod asks for its id, because its id is at or
	// above the count, or because another id is to have its partitions.
	// Do: the pod's log says why; repair what stops the work, or delete the pod.
	NotStopped Kind = "notStopped"
	// HeldByLost: the id's pod has outlived its grace period by 10 s, by the clock of the machine that runs `verify`, and does not go, so that its node may
	// be down.
	// Do: nothing in strict mode, because a pod that waits takes the id by itself. Otherwise see [a node is lost](operations.md#a-node-is-lost).
	HeldByLost Kind = "lost"
	// Stuck: a StatefulSet cannot remove pods, or a rolling update does not go on by itself. Either old pods have all ids, do not hand them over, and Kubernetes ends none of them; or the
	// Deployment's condition `Progressing` says `ProgressDeadlineExceeded`.
	// Do: see [a rolling update does not go on](operations.md#a-rolling-update-does-not-go-on).
	Stuck Kind = "stuck"
	// PartitionTwice: the receipts of two live pods lock a partition.
	// Do: as for `heldTwice`.
	PartitionTwice Kind = "partitionTwice"
	// PartitionMismatch: a pod locks a partition that the workload's annotation does not give to its id. Nobody else gets it meanwhile.
	// Do: nothing while the pod's work stops. If it stays, delete the pod that the sentence names.
	PartitionMismatch Kind = "partitionMismatch"
	// PartitionUnowned: a partition has been nobody's, or an id's that no pod has, for longer than `idalloc.dev/partition-failover-after`.
	// Do: read idalloc's log in the pods that have ids.
	PartitionUnowned Kind = "partitionUnowned"
	// PartitionNotTaken: an id owns a partition, and for 15 seconds or longer the pod that has the id has not locked it. Nobody works on it.
	// Do: read idalloc's log in the pods that have ids.
	PartitionNotTaken Kind = "partitionNotTaken"
	// PartitionKeys: an annotation that you set for partitions makes no sense or is not in force, or no pod works on partitions although you ask for some.
	// Do: set a value that makes sense; give a change a moment (`--wait=10s`), then read idalloc's log. Start idalloc with `--partitions` in the pods.
	PartitionKeys Kind = "partitionKeys"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind Kind `json:"kind"`
	// ID is the id that the finding is about, nil if it is about no particular one.
	ID  *int   `json:"id,omitempty"`
	Pod string `json:"pod,omitempty"`
	// Partitions are the partitions that the finding is about, such as 0-15,40.
	Partitions string `json:"partitions,omitempty"`
	// Detail is a sentence that says what is wrong and what to do.
	Detail string `json:"detail"`
}

// Report is the result of checking an owner and its pods.
type Report struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	OK        bool   `json:"ok"`
	// Count is the owner's desired number of pods.
	Count int `json:"count"`
	// Held is the number of ids below Count that live pods lock.
	Held int `json:"held"`
	// Waiting is the number of the owner's live pods without a slot.
	Waiting  int       `json:"waiting"`
	Findings []Finding `json:"findings"`
	// Warnings are sentences about things that are not wrong, but may lead to a problem.
	Warnings []string `json:"warnings"`
	// Notes are sentences about things that are as they should be, but may surprise.
	Notes []string `json:"notes,omitempty"`
	// Partitions sums up the partitions, nil for a workload without any.
	Partitions *PartitionCounts `json:"partitions,omitempty"`
	// Unused says that neither the owner nor any of its pods has a trace of idalloc. Then this is the only warning.
	Unused bool `json:"unused,omitempty"`
}

func (c *checker) report() Report {
	r := Report{
		Owner: c.owner.String(), Namespace: c.owner.Namespace, OK: len(c.findings) == 0, Count: c.owner.Count,
		Waiting: len(c.waiters()), Findings: append([]Finding{}, c.findings...), Warnings: append([]string{}, c.warnings...),
		Notes: c.notes, Partitions: c.partitions,
	}
	for id := range c.lockers {
		if id < c.owner.Count {
			r.Held++
		}
	}
	idOf := func(f Finding) int {
		if f.ID == nil {
			return -1
		}
		return *f.ID
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(idOf(a), idOf(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Partitions, b.Partitions), cmp.Compare(a.Detail, b.Detail))
	})
	slices.Sort(r.Warnings)
	slices.Sort(r.Notes)
	return r
}

// mostNamed is the largest number of names in a sentence.
const mostNamed = 5

// few joins the first words, and says how many more there are.
func few(words []string) string { return fewOf(words, len(words)) }

// fewOf is few for a list of number words of which only the first are known.
func fewOf(words []string, number int) string {
	if number <= mostNamed {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:mostNamed], ", "), number-mostNamed)
}
