package meter

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the media type of WriteText's output.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// WriteText writes all metrics in Prometheus' text format, with one call of Write. It returns the writer's error.
func (m *Metrics) WriteText(w io.Writer) error {
	const usual = 10 << 10
	t := text{make([]byte, 0, usual)}
	for _, f := range m.Families() {
		t.family(f)
	}
	_, err := w.Write(t.b)
	return err
}

// text is a buffer for the output.
type text struct{ b []byte }

func (t *text) add(parts ...string) {
	for _, p := range parts {
		t.b = append(t.b, p...)
	}
}

func (t *text) family(f Family) {
	if len(f.Samples) == 0 {
		return
	}
	t.add("# HELP ", f.Name, " ", escape(f.Help, false), "\n# TYPE ", f.Name, " ", string(f.Type), "\n")
	for _, s := range f.Samples {
		if s.Histogram != nil {
			t.histogram(f, s)
			continue
		}
		t.sample(f.Name, f.Labels, s.Values, s.Value)
	}
}

// histogram writes the buckets. Each includes the values of the lower ones.
func (t *text) histogram(f Family, s Sample) {
	h, below := s.Histogram, uint64(0)
	bucket := func(bound float64, count uint64) {
		t.sample(f.Name+"_bucket", append(slices.Clip(f.Labels), "le"), append(slices.Clip(s.Values), number(bound)), float64(count))
	}
	for i, bound := range h.Bounds {
		below += h.Counts[i]
		bucket(bound, below)
	}
	bucket(math.Inf(1), h.Count)
	t.sample(f.Name+"_sum", f.Labels, s.Values, h.Sum)
	t.sample(f.Name+"_count", f.Labels, s.Values, float64(h.Count))
}

func (t *text) sample(name string, labels, values []string, value float64) {
	t.add(name)
	for i, label := range labels {
		before := ","
		if i == 0 {
			before = "{"
		}
		t.add(before, label, `="`, escape(values[i], true), `"`)
	}
	if len(labels) > 0 {
		t.add("}")
	}
	t.add(" ", number(value), "\n")
}

// number writes whole numbers without an exponent, so that people can read a token.
func number(value float64) string {
	switch {
	case math.IsInf(value, 1):
		return "+Inf"
	case value == math.Trunc(value) && math.Abs(value) < 1<<53:
		return strconv.FormatInt(int64(value), 10)
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// escape makes a text fit on one line. Quotes need escaping only in label values.
func escape(s string, quotes bool) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\n", `\n`)
	if quotes {
		s = strings.ReplaceAll(s, `"`, `\"`)
	}
	return s
}
