package collector_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/idalloc/idalloc/internal/meter"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/metrics/collector"
)

// A program that links idalloc and an idalloc container show the same.
func TestARegistryGathersWhatTheTextSays(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := collector.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	id := identity.Identity{
		State: identity.StateAssigned, ID: 3, Count: 5, Token: 1795219200123, Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"},
	}
	for _, e := range []event.Event{
		event.Claiming{}, event.Claimed{Result: event.ClaimTaken, Took: 700 * time.Millisecond}, event.Claimed{Result: event.ClaimTaken, Took: time.Hour},
		event.Published{To: id}, event.Written{Freed: []proposal.Change{{Cause: proposal.CauseDead}}}, event.Given{}, event.PartitionsMoved{Given: 3},
	} {
		(*meter.Metrics)(m).Observe(e)
	}
	var text bytes.Buffer
	if err := m.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nidalloc_id 3\n") {
		t.Errorf("the text is\n%s", &text)
	}
	if err := testutil.GatherAndCompare(r, &text); err != nil {
		t.Error(err)
	}
}

func TestARegistryTakesOneInstanceUnlessTheyHaveLabels(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if _, err := collector.Register(r); err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Register(r); err == nil {
		t.Error("a second one is registered under the same names")
	}
	labelled := prometheus.NewPedanticRegistry()
	for _, shard := range []string{"a", "b"} {
		m, err := collector.Register(prometheus.WrapRegistererWith(prometheus.Labels{"shard": shard}, labelled))
		if err != nil {
			t.Fatal(err)
		}
		(*meter.Metrics)(m).Observe(event.Conflict{})
	}
	if n, err := testutil.GatherAndCount(labelled, "idalloc_conflicts_total"); n != 2 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}
