package topics_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/topics"
	"github.com/idalloc/idalloc/pkg/placement"
)

// server has the totals of each topic's partitions.
type server map[string]map[int]float64

func (s server) read(at time.Time) func(context.Context, string) (monitor.Reading, error) {
	return func(_ context.Context, topic string) (monitor.Reading, error) {
		values, there := s[topic]
		if !there {
			return monitor.Reading{}, errors.New("there is no such topic")
		}
		return monitor.Reading{At: at, Totals: true, Values: values, Backlogs: map[int]float64{0: 7}}, nil
	}
}

func list(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "topics")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheLowestNumberIsPartition0(t *testing.T) {
	path := list(t, "", "# what the consumers know\norders 0-1,6\n\npayments 3 # one queue\n")
	s := topics.Source{Path: path, Topic: server{"orders": {0: 10, 2: 12, 3: 13}, "payments": {0: 20}}.read(time.Now())}
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[int]float64{0: 10, 6: 12, 3: 20}; !maps.Equal(r.Values, want) {
		t.Errorf("%v, want %v", r.Values, want)
	}
	if want := placement.Of(0, 1, 3, 6); !r.Unused.Equal(placement.Between(0, 4095).Minus(want)) {
		t.Errorf("unused: %s", r.Unused)
	}
	if want := []string{"partition 3 of topic orders"}; !slices.Equal(r.Beyond, want) {
		t.Errorf("beyond: %q, want %q", r.Beyond, want)
	}
	if got := r.Name(6) + ", " + r.Name(3) + ", " + r.Name(2); got != "partition 2 of topic orders, partition 0 of topic payments, partition 2" {
		t.Error(got)
	}
	if r.Backlogs[0] != 7 || r.Backlogs[3] != 7 || len(r.Backlogs) != 2 {
		t.Errorf("backlogs %v", r.Backlogs)
	}
}

// A number that passes from nothing, or from one topic, to another one has not grown by the difference of the totals.
func TestAChangedListIsNoLoad(t *testing.T) {
	path, begin := list(t, "", "orders 0-1"), time.Unix(1e9, 0)
	m := monitor.Monitor{Window: 30 * time.Second, Most: 1e6}
	read := func(second int) {
		t.Helper()
		at, n := begin.Add(time.Duration(second)*time.Second), float64(second)
		counts := server{"orders": {0: 10 * n, 1: 20 * n}, "payments": {0: 5e6 + 40*n, 1: 5e6}, "refunds": {0: 3 * n}}
		r, err := topics.Source{Path: path, Topic: counts.read(at)}.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(second int, want ...float64) {
		t.Helper()
		read(second)
		l := m.Loads(4)
		if !l.Missing.Empty() {
			t.Errorf("second %d: nothing is known of %s", second, l.Missing)
		}
		for i, got := range l.Speeds {
			if got != want[i] {
				t.Errorf("second %d: number %d has %g units/s, want %g", second, i, got, want[i])
			}
		}
	}
	for second := 0; second < 40; second += 5 {
		read(second)
	}
	expect(40, 10, 20, 0, 0)
	list(t, path, "orders 0-1\npayments 2-3")
	expect(45, 10, 20, 0, 0) // the window has no growth of the new ones yet
	for second := 50; second < 80; second += 5 {
		read(second)
	}
	expect(80, 10, 20, 40, 0)
	list(t, path, "orders 0-1\nrefunds 2")
	expect(85, 10, 20, 40, 0) // as above
	for second := 90; second < 120; second += 5 {
		read(second)
	}
	expect(120, 10, 20, 3, 0)
}

func TestAListThatIsWrongIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "names no topic",
		"# orders 0-3":                   "names no topic",
		"orders":                         "line 1 is not a topic and its numbers",
		"\norders 0 - 3":                 "line 2 is not a topic and its numbers",
		"{x=\"y\"} 0-3":                  "line 1 is not a topic and its numbers",
		"orders 0-x":                     "topic orders: ",
		"orders 0-4096":                  "topic orders: ",
		"orders 0-3\norders 4-7":         "topic orders has two lines",
		"orders 0-3\npayments 2-5":       "topic payments has the numbers 2-3, which another topic has",
		strings.Repeat("#", 1<<20) + "#": "it has 1048577 bytes",
		"orders 0-3\nrefunds 4":          "topic refunds: there is no such topic",
	} {
		s := topics.Source{Path: list(t, "", text), Topic: server{"orders": {}, "payments": {}}.read(time.Now())}
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want %q", text, err, want)
		}
	}
	s := topics.Source{Path: filepath.Join(t.TempDir(), "none")}
	if _, err := s.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
