package inspect

import (
	"fmt"
	"io"
	"strings"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Kind is its name in the table of checks.
	Kind string `json:"kind"`
	// ID is the id that the finding is about, or nil.
	ID  *int   `json:"id,omitempty"`
	Pod string `json:"pod,omitempty"`
	// Partitions are the partitions that the finding is about, such as 0-15,40.
	Partitions string `json:"partitions,omitempty"`
	// Detail is a sentence: what is wrong and what to do.
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
	// Notes are sentences about things that are correct but may surprise.
	Notes []string `json:"notes,omitempty"`
	// Partitions summarises the partitions. It is nil for a workload without any.
	Partitions *PartitionCounts `json:"partitions,omitempty"`
	// Unused: neither the owner nor any of its pods has a trace of idalloc. Then this is the only warning.
	Unused bool `json:"unused,omitempty"`
}

// Table writes a line for each finding and each warning, and a last line with the verdict. For a workload that does not use idalloc, it writes only that.
func (r Report) Table(w io.Writer) error {
	if r.Unused {
		_, err := fmt.Fprintln(w, strings.Join(r.Warnings, "\n"))
		return err
	}
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.Kind+": "+f.Detail)
	}
	for _, warning := range r.Warnings {
		lines = append(lines, "warning: "+warning)
	}
	for _, note := range r.Notes {
		lines = append(lines, "note: "+note)
	}
	verdict, partitions := "ok", ""
	if !r.OK {
		verdict = "not ok"
	}
	if r.Partitions != nil {
		partitions = fmt.Sprintf("; they lock %d of %d partitions", r.Partitions.Locked, r.Partitions.Count)
	}
	lines = append(lines, fmt.Sprintf("%s: %s: live pods hold %d of %d ids, %d wait%s", r.Owner, verdict, r.Held, r.Count, r.Waiting, partitions))
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
