package runs_test

import (
	"testing"

	"github.com/idalloc/idalloc/internal/runs"
)

func TestWhichContainersRunIdalloc(t *testing.T) {
	for name, tc := range map[string]struct {
		image         string
		command, args []string
		want          bool
	}{
		"its image":                 {"example.com:5000/idalloc:v1@sha256:0", nil, []string{"watch"}, true},
		"its image without a tag":   {"idalloc", nil, nil, true},
		"its program":               {"app", []string{"/bin/idalloc"}, []string{"run"}, true},
		"its program as argument":   {"tini", nil, []string{"/idalloc", "run"}, true},
		"another program":           {"x/idalloc", []string{"sh"}, []string{"idalloc"}, false},
		"an image with a like name": {"x/idalloc-autoscaler:v1", nil, nil, false},
		"nothing":                   {"", nil, nil, false},
	} {
		if got := runs.Idalloc(tc.image, tc.command, tc.args); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
