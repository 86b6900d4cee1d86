package helm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
	folder = "../../charts/idalloc"
	// actions is a value of the chart.
	actions = "validationActions"
	// inject is another, and a folder of config.
	inject = "inject"
	// controller is one more, and a folder.
	controller = "controller"
	// on is in several of them.
	on = "enabled"
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

// render is "helm template" for a version of Kubernetes.
func render(t *testing.T, minor string, v values) (string, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "idalloc", "idalloc-system"
	install.KubeVersion = &common.KubeVersion{Version: "v1." + minor + ".0", Major: "1", Minor: minor}
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

// objects reads the documents of a YAML file by kind and name.
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
		meta, isMap := o["metadata"].(object)
		if !isMap {
			t.Fatalf("no metadata: %v", o)
		}
		all[fmt.Sprintf("%v/%v", o["kind"], meta["name"])] = o
	}
}

// shipped reads the manifests of folders of config.
func shipped(t *testing.T, folders ...string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("..", "..", "config", folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(file) //nolint:gosec // a file of the project
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(all, objects(t, text))
		}
	}
	return all
}

func TestTheChartIsWhatConfigHas(t *testing.T) {
	for name, tc := range map[string]struct {
		minor   string
		values  values
		folders []string
	}{
		"as it is":               {"36", nil, []string{"policy", "assign", controller}},
		"without the controller": {"30", values{controller: values{on: false}}, []string{"policy"}},
		"with inject.enabled":    {"36", values{inject: values{on: true}}, []string{"policy", "assign", controller, inject}},
	} {
		manifest, err := render(t, tc.minor, tc.values)
		if err != nil {
			t.Fatal(err)
		}
		got, want := objects(t, []byte(manifest)), shipped(t, tc.folders...)
		delete(want, "Namespace/idalloc-system") // helm install --create-namespace makes it
		if len(want) < 3 {
			t.Fatalf("%s: config has only %d", name, len(want))
		}
		for key, o := range want {
			if !reflect.DeepEqual(got[key], o) {
				t.Errorf("%s: %s of config and of the chart differ: make them equal", name, key)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: the chart has %d objects, config has %d", name, len(got), len(want))
		}
	}
}

func TestTheSidecarHasTheVersionOfTheChart(t *testing.T) {
	manifest, err := render(t, "36", values{inject: values{on: true}})
	if err != nil || !strings.Contains(manifest, `"'ghcr.io/idalloc/idalloc:v0.1.0'"`) {
		t.Errorf("%v:\n%s", err, manifest)
	}
	if _, err := render(t, "35", values{inject: values{on: true}, controller: values{on: false}}); err == nil || !strings.Contains(err.Error(), "inject.enabled needs Kubernetes 1.36") {
		t.Errorf("with an older cluster and no controller: %v", err)
	}
}

func TestTheControllerHasTheValues(t *testing.T) {
	manifest, err := render(t, "36", values{controller: values{
		"image": "registry.example.com/controller:v2", "replicas": 3, "namespace": "prod", "kinds": []any{"rollouts.argoproj.io"}, "priorityClassName": "high",
		"tolerations": []any{values{"operator": "Exists"}}, "networkPolicy": values{on: true}, "podMonitor": values{on: true}, "prometheusRule": values{on: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := objects(t, []byte(manifest))
	for _, key := range []string{"Role/idalloc-controller-pods", "RoleBinding/idalloc-controller-pods", "NetworkPolicy/idalloc-controller", "PodMonitor/idalloc-controller", "PrometheusRule/idalloc-controller"} {
		if got[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
	if got["ClusterRole/idalloc-controller"] != nil {
		t.Error("a controller of one namespace has a ClusterRole")
	}
	for _, part := range []string{"registry.example.com/controller:v2", "replicas: 3", "--namespace=prod", "--kind=rollouts.argoproj.io", "request.namespace == 'prod'", "priorityClassName: high", "operator: Exists", `resources: ["rollouts", "rollouts/scale"]`, `"rollouts/*"`} {
		if !strings.Contains(manifest, part) {
			t.Errorf("it has no %s", part)
		}
	}
}

func TestWithoutMutatingPoliciesTheControllerServesAWebhook(t *testing.T) {
	const own, policy, refusal = "MutatingWebhookConfiguration/idalloc-webhook", "MutatingAdmissionPolicy/idalloc-assign", "ValidatingAdmissionPolicy/idalloc-assign"
	for name, tc := range map[string]struct {
		minor, admission string
		webhook          bool
	}{
		"an older cluster": {"35", "auto", true}, "a newer one": {"36", "auto", false}, "said so": {"36", "webhook", true}, "said no": {"35", "policy", false},
	} {
		manifest, err := render(t, tc.minor, values{"admission": tc.admission})
		if err != nil {
			t.Fatal(err)
		}
		got := objects(t, []byte(manifest))
		if (got[own] != nil) != tc.webhook || (got[policy] != nil) == tc.webhook || got[refusal] == nil || strings.Contains(manifest, "--webhook=") != tc.webhook {
			t.Errorf("%s: %v", name, slices.Sorted(maps.Keys(got)))
		}
	}
	manifest, err := render(t, "35", values{inject: values{on: true, "image": "example.com/idalloc:v2"}})
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, []byte(manifest)), shipped(t, "webhook")
	delete(want, "Deployment/idalloc-controller")
	for key, o := range want {
		if !reflect.DeepEqual(got[key], o) {
			t.Errorf("%s of config and of the chart differ: make them equal", key)
		}
	}
	if !strings.Contains(manifest, "--sidecar-image=example.com/idalloc:v2") || strings.Contains(manifest, "caBundle:") {
		t.Errorf("no image of the sidecar, or a caBundle that a GitOps tool would put back:\n%s", manifest)
	}
	if manifest, err = render(t, "35", values{controller: values{"namespace": "prod"}}); err != nil || !strings.Contains(manifest, "kubernetes.io/metadata.name: prod") {
		t.Errorf("the webhook is not limited to the controller's namespace: %v", err)
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
		"pattern":     {inject: values{"image": "a'b"}}, // it stands in a text of an expression
		"minimum":     {"controller": values{"replicas": 0}},
		"value must":  {"admission": "none"},
	} {
		if _, err := render(t, "36", v); err == nil {
			t.Errorf("%s: %v is accepted", name, v)
		} else if !strings.Contains(err.Error(), "don't meet the specifications of the schema") {
			t.Errorf("%s: %v", name, err)
		}
	}
	manifest, err := render(t, "30", values{actions: []any{"Warn", "Audit"}, "aggregateToAdmin": false, controller: values{on: false}})
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
