package pace

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// at is a pace whose draws are all u.
func at(u float64) *Pace { return New(func() float64 { return u }) }

// The wait has the shape that the package page derives its figures from.
func TestWindow(t *testing.T) {
	const scale = 100 * ms
	if got := at(0.5).Window(1, scale); got != 0 {
		t.Errorf("one that is alone waits %s", got)
	}
	for _, n := range []int{2, 10, 1000, 100_000} {
		// The first of n: u about 1/n, at about 1.3 times scale, however many there are.
		if got := at(1/float64(n)).Window(n, scale); got < scale || got > 2*scale {
			t.Errorf("the first of %d fires at %s, want 1 to 2 times %s", n, got, scale)
		}
		last, least := at(1).Window(n, scale), at(0).Window(n, scale)
		if least != 0 || last <= scale || last > maxWindow {
			t.Errorf("of %d the waits are in [%s, %s]", n, least, last)
		}
	}
	if got := at(1).Window(100_000, time.Minute); got > maxWindow {
		t.Errorf("%s is longer than %s", got, maxWindow)
	}
}

func TestScale(t *testing.T) {
	for name, tc := range map[string]struct {
		reads               []time.Duration
		plan                time.Duration
		slots               int
		scale, loaded, calm time.Duration
	}{
		"nothing was measured":                         {nil, 0, 10, 5 * ms, 0, 0},
		"a quick server, few slots":                    {[]time.Duration{3 * ms}, 0, 2, 3 * ms, 15 * ms, 15 * ms},
		"many slots take a while to list":              {[]time.Duration{3 * ms}, 0, 100, 50 * ms, 15 * ms, 15 * ms},
		"more do not count":                            {[]time.Duration{3 * ms}, 0, 100_000, time.Second, 15 * ms, 15 * ms},
		"the last read counts, and the quickest, too":  {[]time.Duration{2 * ms, 100 * ms}, 0, 2, 100 * ms, 500 * ms, 40 * ms},
		"a read that is not four times as slow":        {[]time.Duration{2 * ms, 7 * ms}, 0, 2, 7 * ms, 35 * ms, 35 * ms},
		"a plan that took longer":                      {[]time.Duration{2 * ms}, 300 * ms, 2, 300 * ms, 300 * ms, 300 * ms},
		"one that took very long, when all started":    {[]time.Duration{2 * ms}, 8 * time.Second, 2, 8 * time.Second, 8 * time.Second, time.Second},
		"a slow read, a quick one, and a slow one":     {[]time.Duration{90 * ms, 2 * ms, 100 * ms}, 0, 2, 100 * ms, 500 * ms, 40 * ms},
		"the quickest read of all may be the last one": {[]time.Duration{90 * ms, 2 * ms}, 0, 2, 2 * ms, 10 * ms, 10 * ms},
	} {
		p := at(0)
		for _, took := range tc.reads {
			p.Read(took, time.Hour)
		}
		p.Planned(tc.plan)
		if scale, loaded, calm := p.Scale(tc.slots), p.Loaded(), p.Calm(); scale != tc.scale || loaded != tc.loaded || calm != tc.calm {
			t.Errorf("%s: scale %s, loaded %s, calm %s, want %s, %s, %s", name, scale, loaded, calm, tc.scale, tc.loaded, tc.calm)
		}
	}
}

func TestUndone(t *testing.T) {
	var u Undone
	now := time.Unix(1000, 0)
	for times, want := range []time.Duration{0, 100 * ms, 200 * ms, 400 * ms} {
		if got := u.Again(now); got != times || u.Damping() != want {
			t.Errorf("undone %d times: %d, and %s; want %s", times, got, u.Damping(), want)
		}
		now = now.Add(lasting - 1)
	}
	for range 100 {
		u.Again(now)
	}
	if u.Damping() != MaxDamping {
		t.Errorf("undone very often: %s", u.Damping())
	}
	if u.Again(now.Add(lasting)); u.Damping() != 0 {
		t.Errorf("after a minute of peace: %s", u.Damping())
	}
}

func TestStandBack(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 0, 1: 30 * time.Second, 2: time.Minute, 5: 8 * time.Minute, 6: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := at(0).StandBack(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

// Who takes its slot with few others does not wait, and no pod waits longer than the start took twice.
func TestQueue(t *testing.T) {
	p := at(1)
	p.Read(ms, time.Second)
	p.Read(ms, time.Hour) // only the first read ends the start
	for n, want := range map[int]time.Duration{1: 0, 250: 0, 260: 50 * ms, 100_000: 2 * time.Second} {
		if got := p.Queue(n); got != want {
			t.Errorf("of %d one waits up to %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]time.Duration{1: 10 * ms, 100: time.Second, 100_000: 10 * time.Second} {
		if got := p.Watch(n); got != want {
			t.Errorf("of %d one starts its watch after up to %s, want %s", n, got, want)
		}
	}
}

func TestDraws(t *testing.T) {
	least, most := at(0), at(1)
	for name, tc := range map[string]struct{ least, most, wantLeast, wantMost time.Duration }{
		"ReadAgain": {least.ReadAgain(), most.ReadAgain(), 20 * time.Second, 40 * time.Second},
		"Longer":    {least.Longer(3 * time.Second), most.Longer(3 * time.Second), 3 * time.Second, 4 * time.Second},
		"Earlier":   {most.Earlier(8 * time.Second), least.Earlier(8 * time.Second), 7 * time.Second, 8 * time.Second},
		"Confirm":   {least.Confirm(10 * time.Millisecond), most.Confirm(10 * time.Millisecond), 2 * time.Second, 2 * time.Second},
		"Confirm, slowly": {
			least.Confirm(200 * time.Millisecond), most.Confirm(200 * time.Millisecond), 4 * time.Second, 8 * time.Second,
		},
		"Confirm, at last": {least.Confirm(2 * time.Second), most.Confirm(2 * time.Second), 10 * time.Second, 10 * time.Second},
		"AtLeast":          {least.AtLeast(time.Second), most.AtLeast(time.Second), time.Second, 2 * time.Second},
	} {
		if tc.least != tc.wantLeast || tc.most != tc.wantMost {
			t.Errorf("%s: %s to %s, want %s to %s", name, tc.least, tc.most, tc.wantLeast, tc.wantMost)
		}
	}
	draws := []float64{0.5, 0, 1}
	p := New(func() float64 {
		u := draws[0]
		draws = draws[1:]
		return u
	})
	if a, b := p.Longer(6*time.Second), p.Longer(6*time.Second); a != 7*time.Second || a != b {
		t.Errorf("a process is patient by %s, and then by %s", a, b)
	}
}

func TestBackoff(t *testing.T) {
	b := at(1).Backoff()
	if got := b.Current(); got != 0 {
		t.Errorf("%s before anything failed", got)
	}
	for i, want := range []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, MaxDelay, MaxDelay} {
		if got := b.Next(); got != want || b.Current() != want {
			t.Errorf("try %d after %s, want %s", i+1, got, want)
		}
	}
	b.Reset()
	if got := b.Current(); got != 0 {
		t.Errorf("%s after Reset, before anything failed again", got)
	}
	if got := b.Next(); got != 50*ms {
		t.Errorf("%s after Reset", got)
	}
	if got := at(0).Backoff().Next(); got != 25*ms {
		t.Errorf("the shortest draw is %s", got)
	}
}

// What others undo is not repeated each time at once, and not given up.
func TestWhatIsUndoneIsRepeatedLaterEachTime(t *testing.T) {
	now, tries := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0
	end := now.Add(time.Minute)
	for u := (Undone{}); now.Before(end); now = now.Add(50 * time.Millisecond) {
		if u.Left(now) <= 0 {
			u.Again(now)
			tries++
		}
	}
	if tries < 5 || tries > 20 {
		t.Errorf("%d tries in a minute", tries)
	}
}
