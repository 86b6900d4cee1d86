package rehearse

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Loads are recorded speeds.
type Loads struct {
	Partitions int
	rows       []row // ascending in time
}

type row struct {
	at     time.Duration
	speeds []float64 // NaN where nothing was measured
}

// Read reads loads from CSV. The first line names the columns: the time, then the partitions 0, 1, 2 and so on in this order. Each further line is a moment:
// seconds or a time such as 2026-11-23T06:00:00Z, then the speed of each partition in units per second from that moment on. An empty field means that nothing
// was measured.
func Read(in io.Reader) (Loads, error) {
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return Loads{}, fmt.Errorf("the first line, with the names of the columns: %w", err)
	}
	l := Loads{Partitions: len(header) - 1}
	if l.Partitions < 1 || l.Partitions > placement.MaxCount {
		return l, fmt.Errorf("%d columns: there must be the time and 1 to %d partitions", len(header), placement.MaxCount)
	}
	for p := range l.Partitions {
		if header[p+1] != strconv.Itoa(p) {
			return l, fmt.Errorf("column %d is called %q, and must be %d, as the partition", p+2, header[p+1], p)
		}
	}
	for line := 2; ; line++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l, err
		}
		next, err := parseRow(record)
		if err == nil && len(l.rows) > 0 && next.at <= l.rows[len(l.rows)-1].at {
			err = errors.New("it is not later than the line before it")
		}
		if err != nil {
			return l, fmt.Errorf("line %d: %w", line, err)
		}
		l.rows = append(l.rows, next)
	}
	if len(l.rows) == 0 {
		return l, errors.New("there is no line with loads")
	}
	return l, nil
}

func parseRow(record []string) (row, error) {
	r := row{speeds: make([]float64, len(record)-1)}
	if seconds, err := strconv.ParseFloat(record[0], 64); err == nil && seconds >= 0 && seconds < 1e9 {
		r.at = time.Duration(seconds * float64(time.Second))
	} else if at, err := time.Parse(time.RFC3339, record[0]); err == nil {
		r.at = at.Sub(time.Unix(0, 0))
	} else {
		return r, fmt.Errorf("%q is neither a number of seconds nor a time such as 2026-11-23T06:00:00Z", record[0])
	}
	for p, text := range record[1:] {
		if text == "" {
			r.speeds[p] = math.NaN()
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return r, fmt.Errorf("partition %d: %q is no speed", p, text)
		}
		r.speeds[p] = v
	}
	return r, nil
}

// First returns the time of the first line.
func (l Loads) First() time.Duration { return l.rows[0].at }

// Last returns the time of the last line.
func (l Loads) Last() time.Duration { return l.rows[len(l.rows)-1].at }

// At returns the speeds at this time. Loads.At is not set.
func (l Loads) At(after time.Duration) decide.Loads {
	i := sort.Search(len(l.rows), func(i int) bool { return l.rows[i].at > after }) - 1
	out := decide.Loads{Speeds: slices.Clone(l.rows[max(i, 0)].speeds)}
	var missing []int
	for p, v := range out.Speeds {
		if math.IsNaN(v) {
			out.Speeds[p] = 0
			missing = append(missing, p)
		}
	}
	out.Missing = placement.Of(missing...)
	return out
}
