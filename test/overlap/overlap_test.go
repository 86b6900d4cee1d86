package overlap_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/test/overlap"
)

// twice is part of what Check says about two pods with one id.
const twice = "both showed it"

// shows returns samples of a pod every 10 ns from from to to, each of which takes 1 ns.
func shows(pod string, from, to int64, id int, token int64) []overlap.Record {
	var all []overlap.Record
	for t := from; t <= to; t += 10 {
		all = append(all, overlap.Record{Before: t, After: t + 1, Pod: pod, ID: id, Count: 5, Token: token})
	}
	return all
}

// of gives the samples' pod a UID.
func of(uid string, records []overlap.Record) []overlap.Record {
	for i := range records {
		records[i].UID = uid
	}
	return records
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		records []overlap.Record
		// want is part of the error; empty: no violation.
		want string
	}{
		"one after the other": {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 110, 200, 3, 2)), ""},
		"two at once":         {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 50, 200, 3, 2)), "id 3: a (token 1) and b (token 2) both showed it for at least 49ns"},
		"one inside the other": {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 40, 60, 3, 2)),
			twice},
		"a single sample inside a run":          {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 50, 50, 3, 2)), twice},
		"different ids":                         {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 50, 200, 4, 2)), ""},
		"a came back while b held":              {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 110, 200, 3, 2), shows("a", 150, 180, 3, 3)), twice},
		"a came back afterwards":                {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 110, 200, 3, 2), shows("a", 210, 300, 3, 3)), ""},
		"a lost it unseen, b held it meanwhile": {slices.Concat(shows("a", 0, 100, 3, 1), shows("a", 200, 300, 3, 3), shows("b", 120, 180, 3, 2)), ""},
		"a did not sample, but it kept its id":  {slices.Concat(shows("a", 0, 100, 3, 1), shows("a", 200, 300, 3, 1), shows("b", 120, 180, 3, 2)), twice},
		"a showed none meanwhile":               {slices.Concat(shows("a", 0, 100, 3, 1), shows("a", 110, 110, overlap.None, 0), shows("b", 120, 180, 3, 2), shows("a", 190, 200, 3, 3)), ""},
		"the token stays":                       {slices.Concat(shows("a", 0, 100, 3, 1), shows("b", 110, 200, 3, 1)), "b has token 1 after a had 1; a later holder needs a higher one"},
		"the token falls":                       {slices.Concat(shows("a", 0, 100, 3, 9), shows("b", 110, 200, 3, 8)), "a later holder needs a higher one"},
		"the token falls two holders later":     {slices.Concat(shows("a", 0, 100, 3, 9), shows("b", 110, 200, 3, 10), shows("c", 210, 300, 3, 9)), "c has token 9 after a had 9"},
		"the token falls after a restart":       {slices.Concat(shows("a", 0, 100, 3, 9), shows("a", 110, 200, 3, 8)), "the token of a fell from 9 to 8"},
		"the token rises after a restart":       {slices.Concat(shows("a", 0, 100, 3, 9), shows("a", 110, 200, 3, 10)), ""},
		"a successor under the same name": {slices.Concat(of("u", shows("a", 0, 100, 3, 1)), of("v", shows("a", 50, 200, 3, 2))),
			"id 3: a/u (token 1) and a/v (token 2) both showed it"},
		"a successor with its predecessor's token": {slices.Concat(of("u", shows("a", 0, 100, 3, 1)), of("v", shows("a", 110, 200, 3, 1))),
			"a/v has token 1 after a/u had 1; a later holder needs a higher one"},
		"a successor with a token of its own": {slices.Concat(of("u", shows("a", 0, 100, 3, 1)), of("v", shows("a", 110, 200, 3, 2))), ""},
		"out of range":                        {shows("a", 0, 100, 5, 1), "id 5 of a is not in [0, 5)"},
		"no pod ever had an id":               {shows("a", 0, 100, overlap.None, 0), overlap.ErrNoSamples.Error()},
		"two boots mixed":                     {slices.Concat(shows("a", 100, 200, 3, 1), shows("a", 0, 50, 3, 1)), "runs backwards"},
		"slow clock reading hides no overlap that was none": {[]overlap.Record{
			// b was suspended between reading the clock and the id: it may have got the id at any time up to 120.
			{Before: 50, After: 120, Pod: "b", ID: 3, Count: 5, Token: 2},
			{Before: 0, After: 1, Pod: "a", ID: 3, Count: 5, Token: 1}, {Before: 100, After: 101, Pod: "a", ID: 3, Count: 5, Token: 1},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := overlap.Check(c.records)
			switch {
			case c.want == "" && (err != nil || len(report.Violations) > 0):
				t.Errorf("reports %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second is a restarted container
		w, err := overlap.NewWriter(dir, "worker-1", "u-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []int{overlap.None, 3} {
			if err := w.Sample(func() (int, int, int64) { return id, 5, 7 }); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "worker-1.log"), os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // a directory of the test
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("12 34 work"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := overlap.Read(dir)
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, r := range records {
		want := []int{overlap.None, 3}[i%2]
		if r.Pod != "worker-1" || r.UID != "u-1" || r.ID != want || r.Count != 5 || r.Token != 7 || r.Before <= 0 || r.After < r.Before {
			t.Errorf("record %d is %+v", i, r)
		}
		if i > 0 && r.Before < records[i-1].After {
			t.Errorf("record %d is older than the one before", i)
		}
	}
}
