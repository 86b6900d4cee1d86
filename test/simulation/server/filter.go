package server

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// filter is what a list or a watch asks for.
type filter struct {
	label k8slabels.Selector
	field fields.Selector
}

func (s *Server) filter(label, field string) filter {
	return filter{label: parsed(s.selectors, label, parseLabels), field: parsed(s.fields, field, fields.ParseSelector)}
}

func (f filter) matches(v *Version) bool {
	if !v.Exists() {
		return false
	}
	if !f.label.Matches(k8slabels.Set(v.Labels())) {
		return false
	}
	return f.field.Empty() || f.field.Matches(fields.Set{"metadata.name": v.Name, "status.phase": object.Text(v.Object, "status", "phase")})
}

func parseLabels(label string) (k8slabels.Selector, error) { return k8slabels.Parse(label) }

// parsed parses a selector when it is first asked for.
func parsed[S any](known map[string]S, text string, parse func(string) (S, error)) S {
	if s, ok := known[text]; ok {
		return s
	}
	s, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("simulation: selector %q: %v", text, err))
	}
	known[text] = s
	return s
}
