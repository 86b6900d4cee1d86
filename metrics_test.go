package idalloc_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/metrics/collector"
)

func TestALinkedProgramShowsItsMetrics(t *testing.T) {
	c := clusterOf(t)
	registry := prometheus.NewPedanticRegistry()
	o := c.options()
	var err error
	if o.Metrics, err = collector.Register(registry); err != nil {
		t.Fatal(err)
	}
	check := func(when, want string, names ...string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	held := "# HELP idalloc_id_held Whether the instance holds an id and its program may act under it (1), or not (0).\n# TYPE idalloc_id_held gauge\nidalloc_id_held "
	check("before it starts", held+"0\n", "idalloc_id_held", "idalloc_id")
	i := holding(t, idalloc.Start, o)
	check("with an id", held+"1\n"+"# HELP idalloc_id Id that the instance holds. Absent while it holds none.\n# TYPE idalloc_id gauge\nidalloc_id 0\n",
		"idalloc_id_held", "idalloc_id")
	closes(t, i)
	check("after its end", held+"0\n", "idalloc_id_held", "idalloc_id")
}
