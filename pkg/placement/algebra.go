package placement

// Union returns the partitions that are in s, in t, or in both.
func (s Set) Union(t Set) Set {
	switch {
	case s.Empty():
		return t
	case t.Empty():
		return s
	}
	out := make([]span, 0, len(s.spans)+len(t.spans))
	a, b := s.spans, t.spans
	for len(a) > 0 || len(b) > 0 {
		if len(a) == 0 || (len(b) > 0 && b[0].first < a[0].first) {
			a, b = b, a
		}
		if n := len(out); n > 0 && a[0].first-1 <= out[n-1].last {
			out[n-1].last = max(out[n-1].last, a[0].last)
		} else {
			out = append(out, a[0])
		}
		a = a[1:]
	}
	return newSet(out)
}

// Intersect returns the partitions that are in both s and t.
func (s Set) Intersect(t Set) Set {
	var out []span
	a, b := s.spans, t.spans
	for len(a) > 0 && len(b) > 0 {
		if common := (span{max(a[0].first, b[0].first), min(a[0].last, b[0].last)}); common.first <= common.last {
			out = append(out, common)
		}
		if a[0].last < b[0].last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return newSet(out)
}

// Minus returns the partitions of s that are not in t.
func (s Set) Minus(t Set) Set {
	var out []span
	b := t.spans
	for _, r := range s.spans {
		for len(b) > 0 && b[0].last < r.first {
			b = b[1:]
		}
		// A span of t may also reach into the next span of s. So the last examined span stays.
		for i := 0; i < len(b) && b[i].first <= r.last && r.first <= r.last; i++ {
			if r.first < b[i].first {
				out = append(out, span{r.first, b[i].first - 1})
			}
			r.first = b[i].last + 1
		}
		if r.first <= r.last {
			out = append(out, r)
		}
	}
	return newSet(out)
}
