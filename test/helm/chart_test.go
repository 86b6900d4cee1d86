package helm_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/release"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	folder  = "../../charts/idalloc"
	shipped = "../../config/policy"
	// actions is a value of the chart.
	actions = "validationActions"
)

type values = map[string]any

// object is one of a manifest.
type object = map[string]any

func load(t *testing.T) chart.Charter {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render is "helm template".
func render(t *testing.T, v values) (string, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "idalloc", "default"
	install.KubeVersion = &common.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}
	r, err := install.RunWithContext(t.Context(), load(t), v)
	if err != nil {
		return "", err
	}
	a, err := release.NewAccessor(r)
	if err != nil {
		return "", err
	}
	return a.Manifest(), nil
}

// objects reads the documents of a YAML file by kind. Each kind occurs once.
func objects(t *testing.T, text []byte) map[string]object {
	t.Helper()
	all := map[string]object{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		kind, isText := o["kind"].(string)
		if _, twice := all[kind]; twice || !isText {
			t.Fatalf("%v: a second %q", o["metadata"], kind)
		}
		all[kind] = o
	}
}

func TestTheChartIsConfigPolicy(t *testing.T) {
	manifest, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := objects(t, []byte(manifest))
	want := 0
	for _, file := range []string{"policy.yaml", "binding.yaml", "clusterrole.yaml"} {
		text, err := os.ReadFile(filepath.Join(shipped, file)) //nolint:gosec // a constant of the test
		if err != nil {
			t.Fatal(err)
		}
		for kind, o := range objects(t, text) {
			want++
			if !reflect.DeepEqual(got[kind], o) {
				t.Errorf("%s of %s/%s and of the chart differ: make them equal", kind, shipped, file)
			}
		}
	}
	if len(got) != want {
		t.Errorf("the chart has %d objects, %s has %d", len(got), shipped, want)
	}
	files, err := os.ReadDir(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != want+1 {
		t.Errorf("%s has %d files, the test knows %d and the kustomization", shipped, len(files), want)
	}
}

func TestTheValuesHaveASchema(t *testing.T) {
	for name, v := range map[string]values{
		"together":    {actions: []any{"Deny", "Warn"}}, // the API server refuses both together
		"uniqueItems": {actions: []any{"Warn", "Warn"}},
		"minItems":    {actions: []any{}},
		"one of":      {actions: []any{"Refuse"}},
		"boolean":     {"aggregateToAdmin": "yes"},
		"additional":  {"replicas": 3},
	} {
		if _, err := render(t, v); err == nil {
			t.Errorf("%s: %v is accepted", name, v)
		} else if !strings.Contains(err.Error(), "don't meet the specifications of the schema") {
			t.Errorf("%s: %v", name, err)
		}
	}
	manifest, err := render(t, values{actions: []any{"Warn", "Audit"}, "aggregateToAdmin": false})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(manifest, "Deny]") || !strings.Contains(manifest, `["Warn","Audit"]`) || strings.Contains(manifest, "aggregate-to-admin") {
		t.Errorf("the values are not in\n%s", manifest)
	}
}

func TestHelmFindsNothingToCorrect(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	result := lint.Run([]string{folder}, nil)
	for _, m := range result.Messages {
		if !strings.Contains(m.Error(), "icon is recommended") {
			t.Error(m)
		}
	}
	for _, err := range result.Errors {
		t.Error(err)
	}
}
