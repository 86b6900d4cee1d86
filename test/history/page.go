package history

import (
	"bytes"
	_ "embed" // the template
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/overlap"
)

//go:embed page.html
var pageText string

// page is what the script in page.html draws.
type page struct {
	Summary

	Faults    []Fault    `json:"faults"`
	Workloads []workload `json:"workloads"`
}

type workload struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
	Bars    []bar  `json:"bars"`
	Slots   []slot `json:"slots"`
}

// bar is a time in which a pod showed one id under one token.
type bar struct {
	Pod   string `json:"pod"`
	ID    int    `json:"id"`
	Token int64  `json:"token"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// slot is a row of the table of ids.
type slot struct {
	ID      int           `json:"id"`
	Holders int           `json:"holders"`
	Median  time.Duration `json:"median"`
	Longest time.Duration `json:"longest"`
}

// Close ends the run, and writes its page.
func (w *Writer) Close(s Summary) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := page{Summary: s, Faults: w.faults}
	for _, name := range w.workloads {
		records, err := overlap.Read(filepath.Join(w.dir, name))
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		shown, err := timeline(name, records)
		if err != nil {
			return fmt.Errorf("history: %s: %w", name, err)
		}
		p.Workloads = append(p.Workloads, shown)
	}
	t, err := template.New(pageName).Parse(pageText)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	var html bytes.Buffer
	if err = t.Execute(&html, p); err == nil {
		err = os.WriteFile(filepath.Join(w.dir, pageName), html.Bytes(), 0o644) //nolint:gosec // a page to be read by anybody
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// timeline returns what is drawn of the records of a workload, those of each pod in their order.
func timeline(name string, records []overlap.Record) (workload, error) {
	checked, err := overlap.Check(records)
	if err != nil && len(checked.Violations) == 0 && !errors.Is(err, overlap.ErrNoSamples) {
		return workload{}, err
	}
	shown := workload{Name: name, Samples: checked.Samples}
	open := map[string]int{} // the bar of each pod
	for _, r := range records {
		i, is := open[r.Holder()]
		switch {
		case r.ID == overlap.None:
			delete(open, r.Holder())
		case is && shown.Bars[i].ID == r.ID && shown.Bars[i].Token == r.Token:
			shown.Bars[i].To = max(shown.Bars[i].To, r.Before)
		default:
			open[r.Holder()] = len(shown.Bars)
			shown.Bars = append(shown.Bars, bar{r.Holder(), r.ID, r.Token, r.After, max(r.After, r.Before)})
		}
	}
	for id, s := range checked.Slots {
		shown.Slots = append(shown.Slots, slot{id, len(s.Holders), s.MedianGap, s.MaxGap})
	}
	slices.SortFunc(shown.Slots, func(a, b slot) int { return a.ID - b.ID })
	return shown, nil
}
