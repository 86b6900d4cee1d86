package meter

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// stopped returns a Metrics whose clock stands still, and the function that moves it.
func stopped() (m *Metrics, step func(time.Duration)) {
	now := time.UnixMilli(1795219200123)
	m = NewOf("v1.2.3")
	m.now = func() time.Time { return now }
	m.waitingSince = now
	return m, func(d time.Duration) { now = now.Add(d) }
}

func assigned(id, count int, token int64) identity.Identity {
	return identity.Identity{
		State: identity.StateAssigned, ID: id, Count: count, Token: token, Pod: "worker-57c67449b4-59wd7", Namespace: "demo",
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"},
	}
}

// dividing returns the identity with so many partitions, which it owns and of which it stops some.
func dividing(id identity.Identity, count, owned, stopping int) identity.Identity {
	stops := placement.Between(0, stopping-1)
	id.Partitions = identity.PartitionsOf(count, []identity.Share{{Set: placement.Between(0, owned-1), Token: id.Token}}, stops, 0)
	return id
}

func published(to identity.Identity) event.Event { return event.Published{To: to} }

// scrape returns the lines with samples.
func scrape(t *testing.T, m *Metrics) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(textOf(t, m)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func textOf(t *testing.T, m *Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// eventful are events of each kind that the metrics count.
func eventful() []event.Event {
	return []event.Event{
		event.Claiming{}, event.Planned{Foreign: []proposal.Change{{ID: 1, Pod: "worker-else"}}}, event.Planned{Err: errors.New("x")}, event.Conflict{},
		event.Written{Freed: []proposal.Change{{ID: 1, Pod: "worker-gone", Cause: proposal.CauseDead}, {ID: 2, Pod: "worker-lost", Cause: proposal.CauseLost}}},
		event.NotTaken{}, event.Taken{ID: 3, Token: 7}, event.Claimed{Result: event.ClaimTaken, Took: 700 * time.Millisecond},
		event.Claimed{Result: event.ClaimTaken, Took: time.Hour}, event.Claimed{Result: event.ClaimStopped}, event.Claimed{Result: event.ClaimFailed},
		published(dividing(assigned(3, 5, 1795219200123), 64, 12, 2)), event.Paused{Paused: true},
		event.PartitionsMoved{Given: 5, Taken: 4}, event.PartitionsMoved{Given: 2}, event.Written{}, event.Damaged{}, event.Damaged{Expected: true},
		event.Given{Requester: "worker-new"}, event.Given{}, event.Given{}, event.GivenBack{}, event.Lost{}, event.Fenced{},
	}
}

func TestEachEventIsCounted(t *testing.T) {
	m, _ := stopped()
	for _, e := range eventful() {
		m.Observe(e)
	}
	got := scrape(t, m)
	for _, want := range []string{
		`idalloc_id_held 1`, `idalloc_id 3`, `idalloc_token 1795219200123`, `idalloc_slots 5`, `idalloc_state{state="assigned"} 1`, `idalloc_state{state="pending"} 0`,
		`idalloc_foreign_pods 0`, `idalloc_waiting_seconds 0`, `idalloc_contact_age_seconds 0`,
		`idalloc_claims_total{result="taken"} 2`, `idalloc_claims_total{result="stopped"} 1`, `idalloc_claims_total{result="failed"} 1`,
		`idalloc_claim_duration_seconds_bucket{le="0.5"} 0`, `idalloc_claim_duration_seconds_bucket{le="1"} 1`, `idalloc_claim_duration_seconds_bucket{le="600"} 1`,
		`idalloc_claim_duration_seconds_bucket{le="+Inf"} 2`, `idalloc_claim_duration_seconds_sum 3600.7`, `idalloc_claim_duration_seconds_count 2`,
		`idalloc_takes_total{result="taken"} 1`, `idalloc_takes_total{result="not_taken"} 1`, `idalloc_conflicts_total 1`,
		`idalloc_plans_total{result="made"} 1`, `idalloc_plans_total{result="failed"} 1`, `idalloc_writes_total 2`,
		`idalloc_slots_freed_total{cause="dead"} 1`, `idalloc_slots_freed_total{cause="lost"} 1`, `idalloc_slots_freed_total{cause="given"} 0`,
		`idalloc_slots_given_total{reason="hand_over"} 1`, `idalloc_slots_given_total{reason="move"} 2`, `idalloc_slots_given_total{reason="give_back"} 1`,
		`idalloc_restores_total 2`, `idalloc_ids_lost_total 1`, `idalloc_ids_fenced_total 1`,
		`idalloc_partitions 64`, `idalloc_partitions_owned 12`, `idalloc_partitions_stopping 2`, `idalloc_partitions_paused 1`, `idalloc_partition_moves_total 7`,
		`idalloc_owner_info{owner_kind="Deployment",owner_name="worker"} 1`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestThereIsNoIDWhileNoneIsHeld(t *testing.T) {
	for name, give := range map[string]func(*Metrics){
		"at the start": func(*Metrics) {},
		"of a pod that drains": func(m *Metrics) {
			m.Observe(published(dividing(assigned(3, 5, 7), 8, 8, 0)))
			m.Observe(published(assigned(3, 5, 7).Without(identity.StateDraining)))
		},
		"of a process that has not noticed its fence": func(m *Metrics) {
			m.Observe(published(assigned(3, 5, 7)))
			m.CheckFenced(func() bool { return true })
		},
	} {
		m, _ := stopped()
		give(m)
		got := scrape(t, m)
		if !slices.Contains(got, "idalloc_id_held 0") {
			t.Errorf("%s: an id is held", name)
		}
		for _, line := range got {
			if strings.HasPrefix(line, "idalloc_id ") || strings.HasPrefix(line, "idalloc_token ") || line == `idalloc_state{state="assigned"} 1` {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestWithoutAnIDThereAreNoPartitions(t *testing.T) {
	m, _ := stopped()
	m.Observe(published(dividing(assigned(3, 5, 7), 8, 8, 0)))
	m.CheckFenced(func() bool { return true })
	if got := scrape(t, m); !slices.Contains(got, "idalloc_partitions_owned 0") {
		t.Error("partitions are owned without an id")
	}
}

// seconds returns the value of a gauge without labels.
func seconds(t *testing.T, m *Metrics, name string) float64 {
	t.Helper()
	for _, f := range m.Families() {
		if f.Name == name {
			return f.Samples[0].Value
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func TestWaitingLastsFromTheStartOfAClaimToItsEnd(t *testing.T) {
	m, step := stopped()
	want := func(when string, want float64) {
		t.Helper()
		if got := seconds(t, m, "idalloc_waiting_seconds"); got != want {
			t.Errorf("%s: %v s, want %v", when, got, want)
		}
	}
	step(10 * time.Second)
	want("before the first claim", 10)
	m.Observe(event.Claiming{})
	step(5 * time.Second)
	want("in the first claim", 15)
	m.Observe(event.Claimed{Result: event.ClaimTaken})
	step(time.Hour)
	want("with an id", 0)
	m.Observe(event.Claiming{})
	step(7 * time.Second)
	want("in the second claim", 7)
	m.Observe(published(assigned(0, 1, 7).Without(identity.StateReleased)))
	want("at the end", 0)
}

// An instance with an id plans seldom, so that it would not hear that the foreign pods are gone.
func TestForeignPodsCountWhileTheInstanceWaits(t *testing.T) {
	m, _ := stopped()
	foreign := []proposal.Change{{ID: 1, Pod: "x"}, {ID: 2, Pod: "y"}}
	for i, tc := range []struct {
		happens event.Event
		want    float64
	}{
		{event.Claiming{}, 0}, {event.Planned{Foreign: foreign}, 2}, {event.Planned{Err: errors.New("no list")}, 2}, {event.Planned{Foreign: foreign[:1]}, 1},
		{event.Claimed{Result: event.ClaimTaken}, 0}, {event.Planned{Foreign: foreign}, 0}, {event.Claiming{}, 0}, {event.Planned{}, 0},
	} {
		m.Observe(tc.happens)
		if got := seconds(t, m, "idalloc_foreign_pods"); got != tc.want {
			t.Errorf("after event %d: %v, want %v", i, got, tc.want)
		}
	}
}

func TestTheAgeOfTheContact(t *testing.T) {
	m, step := stopped()
	want := func(when string, want float64) {
		t.Helper()
		if got := seconds(t, m, "idalloc_contact_age_seconds"); got != want {
			t.Errorf("%s: %v s, want %v", when, got, want)
		}
	}
	step(time.Hour)
	want("with contact", 0)
	m.Observe(event.Away{Since: m.now().Add(-20 * time.Second), Reason: errors.New("x")})
	step(time.Second)
	want("without contact", 21)
	m.Observe(event.Back{})
	want("with contact again", 0)
	m.Observe(published(assigned(3, 5, 7)))
	m.Observe(event.Contact{Age: 2 * time.Second, Overdue: 5 * time.Minute})
	step(4 * time.Minute)
	want("in strict mode, before the next contact is overdue", 0)
	m.Observe(event.Away{Since: m.now().Add(-20 * time.Second), Reason: errors.New("x")})
	want("in strict mode, without an answer", 20)
	step(time.Minute)
	want("in strict mode, when contact is overdue", 302)
	m.Observe(event.Back{})
	m.Observe(event.Fenced{})
	m.Observe(published(assigned(3, 5, 7).Without(identity.StateFenced)))
	want("of a fenced process that is not known to be without contact", 0)
}

// parse returns the families that Prometheus' own parser finds.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

func TestPrometheusParsesTheText(t *testing.T) {
	fresh, _ := stopped()
	full, _ := stopped()
	for _, e := range eventful() {
		full.Observe(e)
	}
	for name, m := range map[string]*Metrics{"fresh": fresh, "full": full} {
		families := parse(t, textOf(t, m))
		for _, f := range m.Families() {
			got := families[f.Name]
			if len(f.Samples) == 0 {
				if got != nil {
					t.Errorf("%s: %s has no samples and is there", name, f.Name)
				}
				continue
			}
			if got.GetHelp() != f.Help || !strings.EqualFold(got.GetType().String(), string(f.Type)) || len(got.GetMetric()) != len(f.Samples) {
				t.Errorf("%s: %s is %v", name, f.Name, got)
			}
		}
	}
}

// It finds what promtool check metrics finds.
func TestTheNamesKeepPrometheusConventions(t *testing.T) {
	m, _ := stopped()
	for _, e := range eventful() {
		m.Observe(e)
	}
	problems, err := promlint.New(strings.NewReader(textOf(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestValuesOfLabelsAreEscaped(t *testing.T) {
	m := NewOf("a\\b\"c\nd")
	for _, l := range parse(t, textOf(t, m))["idalloc_build_info"].GetMetric()[0].GetLabel() {
		if l.GetName() == "version" && l.GetValue() != "a\\b\"c\nd" {
			t.Errorf("the version is %q", l.GetValue())
		}
	}
}

func TestTheNumberOfSeriesDoesNotGrow(t *testing.T) {
	m, _ := stopped()
	for _, e := range eventful() {
		m.Observe(e)
	}
	before := len(scrape(t, m))
	for i := range 1000 {
		name := fmt.Sprintf("worker-%d", i)
		m.Observe(event.Written{Freed: []proposal.Change{{ID: i, Pod: name, Cause: proposal.CauseUnused}}})
		m.Observe(event.Given{ID: i, Requester: name})
		id := assigned(i, 1000, int64(i))
		id.Pod = name
		m.Observe(published(id))
	}
	got := scrape(t, m)
	if len(got) != before {
		t.Errorf("%d series became %d", before, len(got))
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "worker-") {
		t.Errorf("the name of a pod is in\n%s", text)
	}
}

func TestTheVersionIsThatOfTheBuildUnlessTheProgramKnowsIt(t *testing.T) {
	if got := textOf(t, NewOf("v9")); !strings.Contains(got, `",version="v9"} 1`) {
		t.Errorf("%s", got)
	}
	if got := textOf(t, New()); strings.Contains(got, `version=""`) {
		t.Error("the version is empty")
	}
}

var rewrite = flag.Bool("rewrite", false, "write the table of docs/metrics.md again") //nolint:gochecknoglobals // a flag of the test

func TestTheDocumentedTableIsCurrent(t *testing.T) {
	const begin, end = "<!-- made by go test ./internal/meter -rewrite -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "metrics.md")
	page, err := os.ReadFile(path) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	now, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", path)
	}
	m, _ := stopped()
	for _, e := range eventful() {
		m.Observe(e)
	}
	want := documented(len(scrape(t, m)))
	if *rewrite {
		now = want
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil { //nolint:gosec // the same
			t.Fatal(err)
		}
	}
	if now != want {
		t.Errorf("the table of %s is not that of the code: run go test ./internal/meter -rewrite", path)
	}
}

// documented returns the table of the documentation.
func documented(most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "An instance has at most %d time series.\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n", most)
	for _, d := range Descriptions() {
		labels := "–"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		if len(d.Values) > 0 {
			labels += ": " + strings.Join(d.Values, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels, d.Help)
	}
	return b.String()
}
