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
	// HeldTwice: the receipts of two live pods lock one id.
	HeldTwice Kind = "heldTwice"
	// HeldByDead: the map gives the id to a pod that is gone, Succeeded or Failed.
	HeldByDead Kind = "dead"
	// Unheld: nobody has the id, although a live pod waits for one.
	Unheld Kind = "unheld"
	// Damaged: an annotation of idalloc's that somebody else wrote cannot be read, or a pod's labels hide its receipt.
	Damaged Kind = "damaged"
	// Changed: somebody else has removed what the owner proposes, and no pod has written it again yet.
	Changed Kind = "changed"
	// Mismatch: a pod's receipt and the map do not agree.
	Mismatch Kind = "mismatch"
	// OtherOwner: a pod of the workload has a receipt for another workload.
	OtherOwner Kind = "otherOwner"
	// Foreign: a pod that is not the workload's locks an id of it.
	Foreign Kind = "foreign"
	// Waits: a pod waits, and live pods that do not end have all ids.
	Waits Kind = "waits"
	// NotStopped: a pod was told to stop work, and the work goes on.
	NotStopped Kind = "notStopped"
	// HeldByLost: the pod that has the id has outlived its grace period, so that its node may be down.
	HeldByLost Kind = "lost"
	// Stuck: a rolling update does not go on by itself.
	Stuck Kind = "stuck"
	// PartitionTwice: the receipts of two live pods lock a partition.
	PartitionTwice Kind = "partitionTwice"
	// PartitionMismatch: a pod locks a partition that the row does not give to its id.
	PartitionMismatch Kind = "partitionMismatch"
	// PartitionUnowned: a partition has been nobody's, or an id's that no pod has, for longer than failover-after.
	PartitionUnowned Kind = "partitionUnowned"
	// PartitionNotTaken: an id owns a partition, and the pod that has the id does not lock it.
	PartitionNotTaken Kind = "partitionNotTaken"
	// PartitionKeys: an annotation that the user sets for partitions makes no sense, or is not in force.
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
