package meter

import (
	"runtime"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Type is the type of a metric.
type Type string

// Types of metrics.
const (
	TypeCounter   Type = "counter"
	TypeGauge     Type = "gauge"
	TypeHistogram Type = "histogram"
)

// Description describes a metric.
type Description struct {
	Name string
	Type Type
	// Help describes the metric in one sentence.
	Help string
	// Labels are the names of its labels.
	Labels []string
	// Values are all values of its label, if they are a fixed list.
	Values []string
}

// Family is a metric with its time series.
type Family struct {
	Description
	Samples []Sample
}

// Sample is the value of one time series.
type Sample struct {
	// Values are the values of the labels, in the order of Labels.
	Values []string
	// Value is the value of a counter or a gauge.
	Value float64
	// Histogram is the value of a histogram.
	Histogram *Histogram
}

// Names of the counters.
const (
	claims    = "idalloc_claims_total"
	takes     = "idalloc_takes_total"
	conflicts = "idalloc_conflicts_total"
	plans     = "idalloc_plans_total"
	writes    = "idalloc_writes_total"
	frees     = "idalloc_slots_freed_total"
	gives     = "idalloc_slots_given_total"
	restores  = "idalloc_restores_total"
	losses    = "idalloc_ids_lost_total"
	fences    = "idalloc_ids_fenced_total"
	moves     = "idalloc_partition_moves_total"
)

// Values of labels.
const (
	taken    = "taken"
	notTaken = "not_taken"
	made     = "made"
	failed   = "failed"
	handOver = "hand_over"
	move     = "move"
	giveBack = "give_back"
)

// metric is a row of the table. It has only constants and functions, so that building the table costs no code.
type metric struct {
	name string
	kind Type
	help string
	// labels are the names of the labels. values are all values of the label, if they are a fixed list. Both are separated by commas.
	labels, values string
	// read returns the samples. It is nil for a counter.
	read func(*Metrics) []Sample
}

// describe returns the row as a Description.
func (m metric) describe() Description {
	return Description{Name: m.name, Type: m.kind, Help: m.help, Labels: split(m.labels), Values: split(m.values)}
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// Descriptions returns the descriptions of all metrics, in output order.
func Descriptions() []Description {
	rows := table()
	all := make([]Description, 0, len(rows))
	for _, row := range rows {
		all = append(all, row.describe())
	}
	return all
}

// Families returns all metrics with their current values.
func (m *Metrics) Families() []Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := table()
	all := make([]Family, 0, len(rows))
	for _, row := range rows {
		f := Family{Description: row.describe()}
		switch {
		case row.read != nil:
			f.Samples = row.read(m)
		case f.Labels == nil:
			f.Samples = one(float64(m.counts[series{row.name, ""}]))
		default:
			for _, value := range f.Values {
				f.Samples = append(f.Samples, Sample{Values: []string{value}, Value: float64(m.counts[series{row.name, value}])})
			}
		}
		all = append(all, f)
	}
	return all
}

// states are the values of idalloc_state's label.
const states = string(identity.StatePending + "," + identity.StateAssigned + "," + identity.StateDraining + "," +
	identity.StateReleased + "," + identity.StateLost + "," + identity.StateFenced)

// table returns all metrics.
func table() []metric {
	return []metric{
		{
			name: "idalloc_id_held", kind: TypeGauge,
			help: "Whether the instance holds an id and its program may act under it (1), or not (0).",
			read: func(m *Metrics) []Sample { return truth(m.identity().Assigned()) },
		},
		{
			name: "idalloc_id", kind: TypeGauge,
			help: "Id that the instance holds. Absent while it holds none.",
			read: func(m *Metrics) []Sample {
				return m.ifHeld(func(id identity.Identity) float64 { return float64(id.ID) })
			},
		},
		{
			name: "idalloc_token", kind: TypeGauge,
			help: "Fencing token under which the instance holds its id, as a float64. Absent while it holds none.",
			read: func(m *Metrics) []Sample {
				return m.ifHeld(func(id identity.Identity) float64 { return float64(id.Token) })
			},
		},
		{
			name: "idalloc_state", kind: TypeGauge, labels: "state", values: states,
			help: "State of the instance: 1 for the one that it is in, 0 for the others.",
			read: (*Metrics).states,
		},
		{
			name: "idalloc_slots", kind: TypeGauge,
			help: "Number of slots of the workload, which is the count that the program sees.",
			read: func(m *Metrics) []Sample { return one(float64(m.current.Count)) },
		},
		{
			name: "idalloc_waiting_seconds", kind: TypeGauge,
			help: "Time for which the instance has waited for an id. 0 while it does not wait.",
			read: func(m *Metrics) []Sample { return one(m.waiting().Seconds()) },
		},
		{
			name: "idalloc_foreign_pods", kind: TypeGauge,
			help: "Number of pods that are not the workload's and lock a slot of it, as found by the last plan of the instance. 0 while it does not wait for an id.",
			read: func(m *Metrics) []Sample { return one(float64(m.foreign)) },
		},
		{
			name: "idalloc_contact_age_seconds", kind: TypeGauge,
			help: "Time since contact with the API server was lost, 0 while there is contact. In strict mode, contact is also lost if no answer has " +
				"confirmed the id for half of fence-after; then it is the time since the last such request was sent.",
			read: func(m *Metrics) []Sample { return one(m.contactAge().Seconds()) },
		},
		{
			name: claims, kind: TypeCounter, labels: "result",
			values: string(event.ClaimTaken + "," + event.ClaimStopped + "," + event.ClaimFailed),
			help: "Claims that have ended: with a slot (taken), because the process was told to stop or its time was over (stopped), or because " +
				"there can be no slot (failed).",
		},
		{
			name: "idalloc_claim_duration_seconds", kind: TypeHistogram,
			help: "Time that claims took, from the first read to the end of the take. Only claims that got a slot count.",
			read: func(m *Metrics) []Sample { return []Sample{{Histogram: m.claims.clone()}} },
		},
		{
			name: takes, kind: TypeCounter, labels: "result", values: taken + "," + notTaken,
			help: "Takes of a slot that the map gave to the pod. A slot is not taken if the receipt of another live pod, or in strict mode its Lease, locks it.",
		},
		{
			name: conflicts, kind: TypeCounter,
			help: "Writes that were refused because the object had changed meanwhile.",
		},
		{
			name: plans, kind: TypeCounter, labels: "result", values: made + "," + failed,
			help: "Plans, each of which lists the pods of the workload.",
		},
		{
			name: writes, kind: TypeCounter,
			help: "Writes of the assignment to the workload.",
		},
		{
			name: frees, kind: TypeCounter, labels: "cause",
			values: string(proposal.CauseDead + "," + proposal.CauseLost + "," + proposal.CauseGiven + "," + proposal.CauseUnused + "," + proposal.CauseLocked),
			help: "Entries of the map that the writes of this instance took out. The pod was gone or had ended (dead), was strict and had outlived its grace period (lost), " +
				"gave the slot (given), or had not taken it and may not any more (unused); or a receipt says otherwise (locked).",
		},
		{
			name: gives, kind: TypeCounter, labels: "reason", values: handOver + "," + move + "," + giveBack,
			help: "Slots that the instance gave to a pod of the current revision (hand_over), because they were at or above the count (move), " +
				"or back to pods that had made room for a program that soon failed (give_back).",
		},
		{
			name: restores, kind: TypeCounter,
			help: "Times that the instance restored idalloc's annotations after a change of them.",
		},
		{
			name: losses, kind: TypeCounter,
			help: "Ids that were lost, whether or not the work had stopped: another pod had the slot, or the receipt was removed.",
		},
		{
			name: fences, kind: TypeCounter,
			help: "Ids that were withdrawn for lack of contact (strict mode).",
		},
		{
			name: "idalloc_partitions", kind: TypeGauge,
			help: "Number of partitions of the workload. 0 without an id, and in an instance that works on none.",
			read: func(m *Metrics) []Sample { return m.partitions(func(p identity.Partitions) int { return p.Count }) },
		},
		{
			name: "idalloc_partitions_owned", kind: TypeGauge,
			help: "Number of partitions on which the instance works, with those whose work is being stopped.",
			read: func(m *Metrics) []Sample {
				return m.partitions(func(p identity.Partitions) int { return p.Owned().Len() + p.Stopping().Len() })
			},
		},
		{
			name: "idalloc_partitions_stopping", kind: TypeGauge,
			help: "Number of partitions whose work is being stopped so that other ids can have them.",
			read: func(m *Metrics) []Sample {
				return m.partitions(func(p identity.Partitions) int { return p.Stopping().Len() })
			},
		},
		{
			name: "idalloc_partitions_paused", kind: TypeGauge,
			help: "Whether the instance wants no partitions for now (1), because it was paused or its program failed again and again, or not (0).",
			read: func(m *Metrics) []Sample { return truth(m.paused) },
		},
		{
			name: moves, kind: TypeCounter,
			help: "Partitions that writes of this instance moved to another id, or gave out for the first time.",
		},
		{
			name: "idalloc_owner_info", kind: TypeGauge, labels: "owner_kind,owner_name",
			help: "Workload of the instance. The value is 1. Absent until the workload is known.",
			read: func(m *Metrics) []Sample {
				if m.current.Owner.Name == "" {
					return nil
				}
				kind, name, _ := strings.Cut(m.current.Owner.String(), "/")
				return []Sample{{Values: []string{kind, name}, Value: 1}}
			},
		},
		{
			name: "idalloc_build_info", kind: TypeGauge, labels: "goversion,version",
			help: "Versions of Go and idalloc. The value is 1.",
			read: func(m *Metrics) []Sample {
				return []Sample{{Values: []string{runtime.Version(), m.version}, Value: 1}}
			},
		},
	}
}

func (m *Metrics) states() []Sample {
	now, all := string(m.identity().State), split(states)
	samples := make([]Sample, 0, len(all))
	for _, state := range all {
		s := Sample{Values: []string{state}}
		if state == now {
			s.Value = 1
		}
		samples = append(samples, s)
	}
	return samples
}

// ifHeld returns one sample while an id is held, otherwise none.
func (m *Metrics) ifHeld(value func(identity.Identity) float64) []Sample {
	id := m.identity()
	if !id.Assigned() {
		return nil
	}
	return one(value(id))
}

// partitions returns a number of partitions. It is 0 while no id is held.
func (m *Metrics) partitions(number func(identity.Partitions) int) []Sample {
	id := m.identity()
	if !id.Assigned() {
		return one(0)
	}
	return one(float64(number(id.Partitions)))
}

func one(value float64) []Sample { return []Sample{{Value: value}} }

func truth(is bool) []Sample {
	if is {
		return one(1)
	}
	return one(0)
}
