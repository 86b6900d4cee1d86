// Package capacity measures how much pods worked off while they were busy. It is pure: the caller reads the source, the owners and the clock.
//
// The amount worked off is what was published to a partition, less the growth of what is there. If a pod always has enough waiting in each of its partitions,
// that is its capacity. For any other pod it is only what there was to do. Work that a pod has in hand does not count as waiting.
package capacity

import (
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Meter collects readings. It is not safe for concurrent use.
type Meter struct {
	owners      placement.Owners
	first, last monitor.Reading
	// idle explains, by id, why the amount worked off is not the pod's capacity: the first cause seen.
	idle map[int]string
	// least is the lowest amount that waited in each partition.
	least map[int]float64
}

// ahead is the amount of waiting work that a pod must have, as a time. Sources that do not report work in hand, such as Kafka, count it as waiting until it is
// acknowledged. A consumer that keeps up and acknowledges every few seconds therefore nearly always seems to have something waiting.
const ahead = 10 * time.Second

// waiting returns how much of a partition waits, and whether that is known.
func waiting(r monitor.Reading, p int) (amount float64, known bool) {
	if r.Waiting != nil {
		amount, known = r.Waiting[p]
		return amount, known
	}
	amount, known = r.Backlogs[p]
	return amount, known
}

// Pod is the result for the pod of one id.
type Pod struct {
	ID         int
	Partitions placement.Set
	// Speed is in units per second, Waiting in units.
	Speed, Waiting float64
	// Idle explains why Speed is less than the pod's capacity. It is empty if Speed is the capacity.
	Idle string
}

// Busy reports whether something waits in each partition that a pod owns.
func Busy(r monitor.Reading, owners placement.Owners) bool {
	for _, set := range owners {
		for p := range set.All() {
			if waits, _ := waiting(r, p); waits <= 0 {
				return false
			}
		}
	}
	return true
}

// Add adds a reading, and the owners at that time.
func (m *Meter) Add(r monitor.Reading, owners placement.Owners) {
	if m.idle == nil {
		m.first, m.owners, m.idle, m.least = r, owners, map[int]string{}, map[int]float64{}
	}
	took := r.At.Sub(m.first.At).Round(time.Second)
	for id, set := range m.owners {
		if m.idle[id] != "" {
			continue
		}
		if !set.Equal(owners[id]) {
			m.idle[id] = fmt.Sprintf("after %s its partitions changed", took)
			continue
		}
		m.idle[id] = m.why(r, set, took)
	}
	m.last = r
}

// why explains why a pod with these partitions may not be busy, or returns "".
func (m *Meter) why(r monitor.Reading, set placement.Set, took time.Duration) string {
	if set.Empty() {
		return "it has no partitions"
	}
	for p := range set.All() {
		total, known := r.Values[p]
		waits, counted := waiting(r, p)
		if least, seen := m.least[p]; !seen || waits < least {
			m.least[p] = waits
		}
		switch before := m.last.Values[p]; {
		case !known || !counted:
			return fmt.Sprintf("after %s nothing says how much of %s came and waits", took, r.Called(p))
		case total < before || r.Origins[p] != m.first.Origins[p]:
			return fmt.Sprintf("after %s the counter of %s was reset", took, r.Called(p))
		case waits <= 0:
			return fmt.Sprintf("after %s nothing of %s waited that the pod did not have in hand", took, r.Called(p))
		}
	}
	return ""
}

// Pods returns what each pod worked off between the first and the last reading, in the order of the ids.
func (m *Meter) Pods() []Pod {
	took := m.last.At.Sub(m.first.At).Seconds()
	pods := make([]Pod, 0, len(m.owners))
	for _, id := range m.owners.IDs() {
		pod := Pod{ID: id, Partitions: m.owners[id], Idle: m.idle[id]}
		for p := range pod.Partitions.All() {
			waits, _ := waiting(m.last, p)
			pod.Waiting += waits
			done := m.last.Values[p] - m.first.Values[p] - m.last.Backlogs[p] + m.first.Backlogs[p]
			if pod.Speed += done; pod.Idle == "" && m.least[p] < done/took*ahead.Seconds() {
				pod.Idle = fmt.Sprintf("less than %s of work waited in %s at some time: let more pile up", ahead, m.last.Called(p))
			}
		}
		if pod.Speed = max(0, pod.Speed/took); took <= 0 {
			pod.Speed, pod.Idle = 0, "there is one reading only"
		}
		pods = append(pods, pod)
	}
	return pods
}

// ErrIdle means that no pod was busy for the whole time.
var ErrIdle = errors.New("no pod was busy all the time, so nothing says what one can do: let work pile up in every partition, and measure while it is worked off")

// Print prints a row for each pod, and the value for --capacity: the speed of the slowest pod that was always busy. Errors: ErrIdle, and those of out.
func Print(out io.Writer, pods []Pod) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if _, err := fmt.Fprintln(w, "ID\tWORKED OFF\tWAITING\tPARTITIONS\tREMARK"); err != nil {
		return err
	}
	slowest, fastest, busy := math.Inf(1), 0.0, 0
	for _, p := range pods {
		if _, err := fmt.Fprintf(w, "%d\t%.4g/s\t%.4g\t%s\t%s\n", p.ID, p.Speed, p.Waiting, p.Partitions, p.Idle); err != nil {
			return err
		}
		if p.Idle == "" {
			slowest, fastest, busy = min(slowest, p.Speed), max(fastest, p.Speed), busy+1
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if busy == 0 {
		return ErrIdle
	}
	_, err := fmt.Fprintf(out, "--capacity=%.4g: the slowest of %d busy pods; the fastest worked off %.4g/s\n", slowest, busy, fastest)
	return err
}
