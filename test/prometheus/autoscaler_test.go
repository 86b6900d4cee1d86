package prometheus

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"
)

const published = "orders_published_total"

// file returns a file of this repository.
func file(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{config(t), ".."}, path...)...))
	must(t, err)
	return string(text)
}

// speeds returns the queries for speeds that the page and the manifest show. A "..." on the page stands for the first query there.
func speeds(t *testing.T) []string {
	t.Helper()
	page := file(t, "docs", "autoscaling.md")
	var all []string
	for _, found := range regexp.MustCompile("'([^'\n]*"+published+"[^'\n]*)'|`([^`\n]*"+published+"[^`\n]*)`").FindAllStringSubmatch(page, -1) {
		all = append(all, found[1]+found[2])
	}
	manifest := regexp.MustCompile(`--prometheus-query=(.*)`).FindStringSubmatch(file(t, "autoscaler", "config", "base", "deployment.yaml"))
	if len(all) == 0 || manifest == nil {
		t.Fatalf("the page has the queries %v, and the manifest %v", all, manifest)
	}
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "...", all[0])
	}
	return append(all, manifest[1])
}

// expected is a query at a moment, with the labels and the value of its only result. Without labels there is none.
type expected struct {
	query, at, labels string
	value             float64
}

// answers has promtool ask a query of these series, which are sampled once in an interval.
func answers(t *testing.T, interval string, series map[string]string, want ...expected) {
	t.Helper()
	type object = map[string]any
	input, asked := make([]object, 0, len(series)), make([]object, 0, len(want))
	for name, values := range series {
		input = append(input, object{"series": name, "values": values})
	}
	for _, w := range want {
		samples := []object{}
		if w.labels != "" {
			samples = append(samples, object{"labels": w.labels, "value": w.value})
		}
		asked = append(asked, object{"expr": w.query, "eval_time": w.at, "exp_samples": samples})
	}
	text, err := yaml.Marshal(object{"tests": []object{{"interval": interval, "input_series": input, "promql_expr_test": asked}}})
	must(t, err)
	path := filepath.Join(t.TempDir(), "queries.yaml")
	must(t, os.WriteFile(path, text, 0o600))
	promtool(t.Context(), t, nil, "test", "rules", path)
}

// What a query does not know it must not say: a load of zero takes pods away.
func TestTheQueriesOfThePageHaveNoResultWhereDataIsMissing(t *testing.T) {
	const partition = `{partition="0"}`
	for i, query := range speeds(t) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			answers(t, "15s", map[string]string{published + partition: "0+75x20 _x20 3000+75x20 4500x20"},
				expected{query, "5m", partition, 5},
				expected{query, "6m30s", "", 0}, // the target has not been scraped for 90 s
				expected{query, "15m", partition, 5},
				expected{query, "19m", partition, 0}, // the counter stands still
			)
			answers(t, "1m", map[string]string{published + partition: "0+300x20"}, expected{query, "10m20s", "", 0}) // fewer than two samples in the range
		})
	}
}

// adapted returns the query that prometheus-adapter makes of its rule and of what hpa.yaml selects.
func adapted(t *testing.T) string {
	t.Helper()
	var rules struct {
		ExternalRules []struct {
			MetricsQuery string `json:"metricsQuery"`
			Resources    struct {
				Namespaced *bool `json:"namespaced"`
			} `json:"resources"`
		} `json:"externalRules"`
	}
	must(t, yaml.Unmarshal([]byte(file(t, "autoscaler", "config", "prometheus-adapter.yaml")), &rules))
	var hpa autoscalingv2.HorizontalPodAutoscaler
	must(t, yaml.UnmarshalStrict([]byte(file(t, "autoscaler", "config", "hpa.yaml")), &hpa))
	if len(rules.ExternalRules) != 1 || rules.ExternalRules[0].Resources.Namespaced == nil || *rules.ExternalRules[0].Resources.Namespaced {
		t.Fatalf("%+v: the adapter adds the namespace to the query", rules)
	}
	metric := hpa.Spec.Metrics[0].External.Metric
	matchers := make([]string, 0, len(metric.Selector.MatchLabels))
	for _, label := range slices.Sorted(maps.Keys(metric.Selector.MatchLabels)) {
		matchers = append(matchers, fmt.Sprintf("%s=%q", label, metric.Selector.MatchLabels[label]))
	}
	rule, err := template.New("").Delims("<<", ">>").Parse(rules.ExternalRules[0].MetricsQuery)
	must(t, err)
	var query strings.Builder
	must(t, rule.Execute(&query, map[string]string{"Series": metric.Name, "LabelMatchers": strings.Join(matchers, ",")}))
	return query.String()
}

// triggered returns KEDA's query.
func triggered(t *testing.T) string {
	t.Helper()
	query := regexp.MustCompile(`\n +query: (.*)`).FindStringSubmatch(file(t, "autoscaler", "config", "scaledobject.yaml"))
	if query == nil {
		t.Fatal("scaledobject.yaml has no query")
	}
	return query[1]
}

// When the leader changes, Prometheus has the series of both for a while, and an HPA adds up all that it gets.
func TestTwoLeadersDoNotDoubleThePods(t *testing.T) {
	const whose = `owner_kind="Deployment", owner_name="worker", owner_namespace="default"`
	series := map[string]string{
		`idalloc_autoscaler_pods_wanted{pod="a",` + whose + "}":                                                        "10x10",
		`idalloc_autoscaler_pods_wanted{pod="b",` + whose + "}":                                                        "_x5 10x10",
		`idalloc_autoscaler_pods_wanted{pod="c",owner_name="other",owner_kind="Deployment",owner_namespace="default"}`: "7x15",
	}
	answers(t, "15s", series,
		expected{adapted(t), "1m30s", "{" + whose + "}", 10}, expected{triggered(t), "1m30s", "{}", 10},
		expected{adapted(t), "2m", "{" + whose + "}", 10}, expected{triggered(t), "2m", "{}", 10},
	)
	answers(t, "15s", map[string]string{`up{pod="a"}`: "1x10"}, expected{adapted(t), "1m", "", 0}, expected{triggered(t), "1m", "", 0})
}
