package capacity_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/capacity"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/pkg/placement"
)

// moment is what came and waits so many seconds after the beginning, by partition. NaN is not measured.
type moment struct {
	second           int
	published, waits []float64
	// inHand is what pods have in hand of what waits, nil if the source does not say.
	inHand []float64
}

func (m moment) reading() monitor.Reading {
	r := monitor.Reading{
		At: time.Unix(1e9+int64(m.second), 0), Totals: true,
		Values: map[int]float64{}, Backlogs: map[int]float64{}, Origins: map[int]string{},
	}
	for p := range m.published {
		if !math.IsNaN(m.published[p]) {
			r.Values[p], r.Backlogs[p] = m.published[p], m.waits[p]
		}
	}
	if m.inHand != nil {
		r.Waiting = map[int]float64{}
		for p := range m.inHand {
			r.Waiting[p] = m.waits[p] - m.inHand[p]
		}
	}
	return r
}

func owners(t *testing.T, text string) placement.Owners {
	t.Helper()
	o, err := placement.ParseOwners(text, 4)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func measured(moments []moment, rows ...placement.Owners) []capacity.Pod {
	m := capacity.Meter{}
	for i, one := range moments {
		m.Add(one.reading(), rows[min(i, len(rows)-1)])
	}
	return m.Pods()
}

// Pod 0 works off 50/s of what came before, and pod 1 80/s of what comes at 100/s.
func TestWhatABusyPodWorksOffIsItsCapacity(t *testing.T) {
	var out strings.Builder
	pods := measured([]moment{
		{second: 0, published: []float64{5000, 5000, 0, 0}, waits: []float64{4000, 4000, 500, 500}},
		{second: 30, published: []float64{5000, 5000, 1500, 1500}, waits: []float64{3250, 3250, 800, 800}},
		{second: 60, published: []float64{5000, 5000, 3000, 3000}, waits: []float64{2500, 2500, 1100, 1100}},
	}, owners(t, `{"0":"0-1","1":"2-3"}`))
	if err := capacity.Print(&out, pods); err != nil {
		t.Fatal(err)
	}
	want := `ID   WORKED OFF   WAITING   PARTITIONS   REMARK
0    50/s         5000      0-1          
1    80/s         2200      2-3          
--capacity=50: the slowest of 2 busy pods; the fastest worked off 80/s
`
	if out.String() != want {
		t.Errorf("\n%s\nwant\n%s", out.String(), want)
	}
}

// A measurement may begin when each pod has something to do in all its partitions.
func TestWhetherAllPodsAreBusy(t *testing.T) {
	row, waits := owners(t, `{"0":"0-1","1":"","2":"2"}`), func(waits ...float64) monitor.Reading { return moment{published: waits, waits: waits}.reading() }
	for want, r := range map[bool]monitor.Reading{true: waits(1, 2, 3, 0), false: waits(1, 0, 3, 4)} {
		if capacity.Busy(r, row) != want {
			t.Errorf("%v is not %v", r.Backlogs, want)
		}
	}
	if capacity.Busy(waits(1, 2), row) {
		t.Error("what is not measured counts as waiting")
	}
}

func TestAPodThatWasNotBusyAllTheTimeSaysNothing(t *testing.T) {
	row := owners(t, `{"0":"0-1","1":"","2":"2-3"}`)
	steady := func(second int) moment {
		return moment{second: second, published: []float64{9, 9, 9, 9}, waits: []float64{9, 9, 9, 9}}
	}
	changed := func(change func(*moment)) []moment {
		m := steady(20)
		change(&m)
		return []moment{steady(0), m, steady(40)}
	}
	for want, c := range map[string]struct {
		moments []moment
		rows    []placement.Owners
	}{
		"after 20s nothing of partition 1 waited that the pod did not have in hand": {changed(func(m *moment) { m.waits[1] = 0 }), []placement.Owners{row}},
		"after 20s nothing says how much of partition 0 came and waits":             {changed(func(m *moment) { m.published[0] = math.NaN() }), []placement.Owners{row}},
		"after 20s the counter of partition 0 was reset":                            {changed(func(m *moment) { m.published[0] = 8 }), []placement.Owners{row}},
		"after 40s its partitions changed":                                          {changed(func(*moment) {}), []placement.Owners{row, row, owners(t, `{"0":"0","1":"1","2":"2-3"}`)}},
	} {
		pods := measured(c.moments, c.rows...)
		if len(pods) != 3 || pods[0].Idle != want || pods[1].Idle != "it has no partitions" && pods[1].Idle == "" || pods[2].Idle != "" {
			t.Errorf("%+v, want %s", pods, want)
		}
	}
}

// A pod that works off 20/s because no more comes has something in hand all the time.
func TestWhatIsInHandDoesNotWait(t *testing.T) {
	row := owners(t, `{"0":"0","1":"1"}`)
	comes := func(second int, inHand ...float64) moment {
		n := 20 * float64(second)
		return moment{second: second, published: []float64{n, n}, waits: []float64{50, 2000 - n}, inHand: inHand}
	}
	pods := measured([]moment{comes(0, 50, 50), comes(30, 50, 50), comes(60, 50, 50)}, row)
	if want := "after 0s nothing of partition 0 waited that the pod did not have in hand"; pods[0].Idle != want || pods[1].Idle != "" {
		t.Errorf("%+v, want %s", pods, want)
	}
	// As Kafka, which does not say what is in hand.
	pods = measured([]moment{comes(0), comes(30), comes(60)}, row)
	if want := "less than 10s of work waited in partition 0 at some time: let more pile up"; pods[0].Idle != want || pods[1].Idle != "" {
		t.Errorf("%+v, want %s", pods, want)
	}
}

func TestWithoutABusyPodThereIsNoCapacity(t *testing.T) {
	row := owners(t, `{"0":"0-3"}`)
	idle := []moment{{second: 0, published: []float64{1, 1, 1, 1}, waits: []float64{0, 1, 1, 1}}, {second: 30, published: []float64{9, 9, 9, 9}, waits: []float64{1, 1, 1, 1}}}
	for name, pods := range map[string][]capacity.Pod{"nothing waited": measured(idle, row), "one reading": measured(idle[1:], row), "no reading": measured(nil, row)} {
		if err := capacity.Print(&strings.Builder{}, pods); !errors.Is(err, capacity.ErrIdle) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
