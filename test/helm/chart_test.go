package helm_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/idalloc/idalloc/test/helm"
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

type values = helm.Values

// object is one of a manifest.
type object = map[string]any

// render is "helm template" for a version of Kubernetes.
func render(t *testing.T, minor string, v values) (string, error) {
	t.Helper()
	return renderAs(t, name, "idalloc-system", minor, v)
}

func renderAs(t *testing.T, name, namespace, minor string, v values) (string, error) {
	t.Helper()
	return template(t, name, namespace, minor, v, "--no-hooks")
}

// hooks renders the objects of "helm test" by kind and name.
func hooks(t *testing.T, minor string, v values) map[string]object {
	t.Helper()
	manifest, err := template(t, name, "idalloc-system", minor, v)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, []byte(manifest))
	maps.DeleteFunc(all, func(_ string, o object) bool { return at(o, "metadata", "annotations", "helm.sh/hook") == nil })
	return all
}

func template(t *testing.T, name, namespace, minor string, v values, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"template", name, "CHART", "--namespace", namespace, "--kube-version", "1." + minor + ".0"}, flags...)
	return helm.Command{Home: t.TempDir()}.Run(t.Context(), v, args...)
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

// plain takes out of an object what Helm's conventions add, at any depth.
func plain(in any) {
	switch in := in.(type) {
	case object:
		for _, key := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of", "app.kubernetes.io/version"} {
			delete(in, key)
		}
		delete(in, "revisionHistoryLimit")
		for _, value := range in {
			plain(value)
		}
	case []any:
		for _, value := range in {
			plain(value)
		}
	}
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
			if plain(got[key]); !reflect.DeepEqual(got[key], o) {
				t.Errorf("%s: %s of config and of the chart differ: make them equal", name, key)
			}
		}
		delete(got, "ValidatingAdmissionPolicy/idalloc-gate") // what outlives the chart
		delete(got, "ValidatingAdmissionPolicyBinding/idalloc-gate")
		if len(got) != len(want) {
			t.Errorf("%s: the chart has %d objects, config has %d", name, len(got), len(want))
		}
	}
}

func TestTheSidecarHasTheVersionOfTheChart(t *testing.T) {
	manifest, err := render(t, "36", values{inject: values{on: true}})
	if err != nil || !strings.Contains(manifest, "expression: '''ghcr.io/idalloc/idalloc:v0.1.0'''\n") {
		t.Errorf("%v:\n%s", err, manifest)
	}
	if _, err := render(t, "35", values{inject: values{on: true}, controller: values{on: false}}); err == nil || !strings.Contains(err.Error(), "inject.enabled needs Kubernetes 1.36") {
		t.Errorf("with an older cluster and no controller: %v", err)
	}
}

func TestTheControllerHasTheValues(t *testing.T) {
	manifest, err := render(t, "36", values{
		"commonLabels": values{"team": "platform"}, "global": values{"imageRegistry": "registry.example.com"}, "dashboard": values{on: true},
		controller: values{
			"image": values{"tag": "v2", "digest": "sha256:0abc", "pullPolicy": "Always"}, "replicas": 3, served: []any{"prod", "stage"}, "kinds": []any{"rollouts.argoproj.io"},
			"priorityClassName": "high", "tolerations": []any{values{"operator": "Exists"}}, "revisionHistoryLimit": 1, "logLevel": 1,
			"extraArgs": []any{"--log-format=console"}, "extraEnv": []any{values{"name": "GOGC", "value": "30"}},
			"serviceAccount": values{"name": "ids", "annotations": values{"example.com/role": "r"}}, "podLabels": values{"pod": "label"}, "podAnnotations": values{"pod": "annotation"},
			"podDisruptionBudget": values{"minAvailable": "50%"}, "livenessProbe": values{"timeoutSeconds": 9}, "securityContext": values{"runAsUser": 7},
			"networkPolicy":  values{on: true, "egress": []any{values{"ports": []any{values{"port": 6443}}}}},
			"podMonitor":     values{on: true, "interval": "31s", "labels": values{"release": "pod"}, "relabelings": []any{values{"action": "labelmap"}}},
			"serviceMonitor": values{on: true, "interval": "32s", "scrapeTimeout": "9s"}, "prometheusRule": values{on: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const own = "idalloc-controller"
	got := objects(t, []byte(manifest))
	for _, key := range []string{
		"Role/" + own + "-pods", "RoleBinding/" + own + "-pods", "NetworkPolicy/" + own, "PodMonitor/" + own, "ServiceMonitor/" + own, "Service/" + own,
		"PrometheusRule/" + own, "ConfigMap/idalloc-dashboard", "ServiceAccount/ids",
	} {
		if got[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
	if got["ClusterRole/"+own] != nil {
		t.Error("a controller of some namespaces has a ClusterRole")
	}
	hasLabels(t, "with all values", got)
	for _, part := range []string{
		"registry.example.com/idalloc/idalloc-controller:v2@sha256:0abc", "imagePullPolicy: Always", "replicas: 3", "--namespace=prod", "--namespace=stage", "--kind=rollouts.argoproj.io",
		"priorityClassName: high", "operator: Exists", `resources: ["rollouts", "rollouts/scale"]`, "- rollouts/*", "revisionHistoryLimit: 1\n", "--v=1", "--log-format=console",
		"name: GOGC", "serviceAccountName: ids", "example.com/role: r", "idalloc-system:ids'", "pod: label", "pod: annotation", "minAvailable: 50%", "timeoutSeconds: 9", "runAsUser: 7",
		"[Ingress, Egress]", "port: 6443", "interval: 31s", "release: pod", "action: labelmap", "interval: 32s", "scrapeTimeout: 9s", "IdallocControllerAway", "IdallocKindMissing",
		`grafana_dashboard: "1"`,
	} {
		if !strings.Contains(manifest, part) {
			t.Errorf("it has no %s", part)
		}
	}
}

// hasLabels sees Helm's labels, and one of commonLabels, on all objects.
func hasLabels(t *testing.T, render string, all map[string]object) {
	t.Helper()
	for key, o := range all {
		for label, want := range map[string]any{
			"app.kubernetes.io/instance": name, "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": "idalloc", "team": "platform",
			"app.kubernetes.io/name": nil, "app.kubernetes.io/version": nil, "helm.sh/chart": nil,
		} {
			if is := at(o, "metadata", "labels", label); is == nil || want != nil && is != want {
				t.Errorf("%s: %s has the label %s: %v", render, key, label, is)
			}
		}
	}
}

func TestEveryObjectHasHelmsLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		minor string
		has   string
		v     values
	}{
		"a webhook":              {"35", "MutatingWebhookConfiguration/idalloc-webhook", values{controller: values{"networkPolicy": values{on: true}}}},
		"cert-manager":           {"35", "Certificate/idalloc-webhook-certificate", values{"webhook": values{"certManager": values{on: true}}}},
		"injection":              {"36", "MutatingAdmissionPolicy/idalloc-inject", values{}},
		"injection by a webhook": {"35", "ValidatingAdmissionPolicy/idalloc-strategy", values{}},
		"a tenant":               {"36", "Role/idalloc-controller-pods", values{controller: values{served: []any{"shop"}}}},
	} {
		tc.v["commonLabels"], tc.v[inject] = values{"team": "platform"}, values{on: strings.Contains(name, "injection")}
		manifest, err := render(t, tc.minor, tc.v)
		if err != nil {
			t.Fatal(err)
		}
		all := objects(t, []byte(manifest))
		if all[tc.has] == nil {
			t.Errorf("%s: there is no %s", name, tc.has)
		}
		hasLabels(t, name, all)
		test := hooks(t, tc.minor, tc.v)
		if test["Pod/idalloc-check"] == nil || test["ClusterRoleBinding/idalloc-check"] == nil {
			t.Errorf("%s: helm test has %v", name, slices.Sorted(maps.Keys(test)))
		}
		hasLabels(t, name, test)
	}
}

func TestEachValueIsWhereItBelongs(t *testing.T) {
	const own = "Deployment/idalloc-controller"
	of, pod := func(v values) values { return values{controller: v} }, []string{"spec", "template", "spec"}
	selector := object{"matchLabels": object{"app.kubernetes.io/name": "idalloc-controller", "app.kubernetes.io/instance": "idalloc"}}
	zone, other := object{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}, object{"matchLabels": object{"app": "other"}}
	registry, from := []any{object{"name": "registry"}}, []any{object{"podSelector": object{}}}
	affinity := object{"podAntiAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []any{}}}
	with := func(o object, key string, value any) object {
		o = maps.Clone(o)
		o[key] = value
		return o
	}
	for name, tc := range map[string]struct {
		v    values
		key  string
		path []string
		want any
	}{
		"fullnameOverride": {values{"fullnameOverride": "ids"}, "Deployment/ids-controller", []string{"metadata", "name"}, "ids-controller"},
		"nameOverride":     {values{"nameOverride": "ids"}, "Deployment/idalloc-ids-controller", []string{"metadata", "name"}, "idalloc-ids-controller"},
		"names of policies": {
			values{"fullnameOverride": "ids"}, "MutatingAdmissionPolicyBinding/ids-assign", []string{"spec", "policyName"}, "ids-assign",
		},
		"topologySpreadConstraints": {
			of(values{"topologySpreadConstraints": []any{zone}}), own, append(pod, "topologySpreadConstraints"), []any{with(zone, "labelSelector", selector)},
		},
		"topologySpreadConstraints of their own": {
			of(values{"topologySpreadConstraints": []any{with(zone, "labelSelector", other)}}), own, append(pod, "topologySpreadConstraints"),
			[]any{with(zone, "labelSelector", other)},
		},
		"podSecurityContext": {
			of(values{"podSecurityContext": values{"fsGroup": 7}}), own, append(pod, "securityContext"),
			object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}, "fsGroup": 7},
		},
		"imagePullSecrets": {of(values{"imagePullSecrets": registry}), own, append(pod, "imagePullSecrets"), registry},
		"nodeSelector":     {of(values{"nodeSelector": values{"pool": "system"}}), own, append(pod, "nodeSelector"), object{"pool": "system"}},
		"affinity":         {of(values{"affinity": affinity}), own, append(pod, "affinity"), affinity},
		"readinessProbe": {
			of(values{"readinessProbe": values{"periodSeconds": 9}}), own, append(pod, "containers", "readinessProbe"),
			object{"httpGet": object{"path": "/readyz", "port": "health"}, "periodSeconds": 9},
		},
		"networkPolicy.from": {
			of(values{"networkPolicy": values{on: true, "from": from}}), "NetworkPolicy/idalloc-controller", []string{"spec", "ingress", "from"}, from,
		},
		"imagePullSecrets of the test": {of(values{"imagePullSecrets": registry}), "Pod/idalloc-check", []string{"spec", "imagePullSecrets"}, registry},
		"podSecurityContext of the test": {
			of(values{"podSecurityContext": values{"fsGroup": 7}}), "Pod/idalloc-check", []string{"spec", "securityContext"},
			object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}, "fsGroup": 7},
		},
	} {
		manifest, err := render(t, "36", tc.v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := objects(t, []byte(manifest))
		if strings.HasSuffix(name, "of the test") {
			all = hooks(t, "36", tc.v)
		}
		is, wrong := json.Marshal(at(all[tc.key], tc.path...))
		want, err := json.Marshal(tc.want)
		if err != nil || wrong != nil || !bytes.Equal(is, want) {
			t.Errorf("%s: %s has %s, not %s", name, tc.key, is, want)
		}
	}
}

// Without a right, check does not see a part, and "helm test" passes although it is missing.
func TestTheTestMayReadWhatItChecks(t *testing.T) {
	rules := fmt.Sprint(at(hooks(t, "35", nil)["ClusterRole/idalloc-check"], "rules"))
	for _, want := range []string{
		"validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies mutatingadmissionpolicybindings] verbs:[get]",
		"mutatingwebhookconfigurations] verbs:[list]",
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("there is no right %s in %s", want, rules)
		}
	}
}

// at returns what an object has at a path. In a list it goes on in the first element.
func at(o any, path ...string) any {
	for _, key := range path {
		if list, is := o.([]any); is && len(list) > 0 {
			o = list[0]
		}
		m, _ := o.(object)
		o = m[key]
	}
	return o
}

// Two tenants have a controller each. Helm refuses a second release with an object of the first one.
func TestTwoReleasesShareNoName(t *testing.T) {
	all, tenant := map[string]string{}, func(namespaces ...any) values {
		return values{"policies": values{on: false}, controller: values{served: namespaces}, inject: values{on: true}}
	}
	for _, r := range []struct {
		release, namespace string
		values             values
	}{
		{name, "idalloc-system", values{controller: values{on: false}, inject: values{on: true}}}, {"one", "shared", tenant("a", "b")}, {"two", "shared", tenant("c")},
	} {
		manifest, err := renderAs(t, r.release, r.namespace, "36", r.values)
		if err != nil {
			t.Fatal(err)
		}
		for key, o := range objects(t, []byte(manifest)) {
			key = fmt.Sprint(key, " ", at(o, "metadata", "namespace"))
			if other, has := all[key]; has {
				t.Errorf("releases %s and %s have %s", other, r.release, key)
			}
			all[key] = r.release
		}
	}
	if all["ValidatingAdmissionPolicy/one-idalloc-assign <nil>"] != "one" || all["ValidatingAdmissionPolicy/idalloc-gate <nil>"] != "idalloc" {
		t.Errorf("objects are %v", all)
	}
}

// A tenant's policies change no pod of another one. What refuses a pod that would run without its sidecar is for all namespaces.
func TestATenantsPoliciesAreForItsNamespaces(t *testing.T) {
	manifest, err := renderAs(t, "one", "shared", "36", values{controller: values{served: []any{"a", "b"}}, inject: values{on: true}})
	if err != nil {
		t.Fatal(err)
	}
	got := objects(t, []byte(manifest))
	for key, limited := range map[string]bool{
		"MutatingAdmissionPolicyBinding/one-idalloc-assign": true, "ValidatingAdmissionPolicyBinding/one-idalloc-assign": true,
		"MutatingAdmissionPolicyBinding/one-idalloc-inject": true, "ValidatingAdmissionPolicyBinding/one-idalloc-strategy": true,
		"ValidatingAdmissionPolicyBinding/one-idalloc-inject": false, "ValidatingAdmissionPolicyBinding/idalloc-gate": false,
	} {
		_, name, _ := strings.Cut(key, "/")
		kind, _, _ := strings.Cut(key, "Binding/")
		if got[key] == nil || at(got[key], "spec", "policyName") != name || got[kind+"/"+name] == nil {
			t.Errorf("there is no %s, or it is for the policy %v", key, at(got[key], "spec", "policyName"))
		}
		var want any
		if limited {
			want = []any{object{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"a", "b"}}}
		}
		if is := at(got[key], "spec", "matchResources", "namespaceSelector", "matchExpressions"); !reflect.DeepEqual(is, want) {
			t.Errorf("%s is for the namespaces %v, not %v", key, is, want)
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
	manifest, err := render(t, "35", values{inject: values{on: true, "image": values{"tag": "v2"}}})
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, []byte(manifest)), shipped(t, "webhook")
	delete(want, "Deployment/idalloc-controller")
	for key, o := range want {
		if plain(got[key]); !reflect.DeepEqual(got[key], o) {
			t.Errorf("%s of config and of the chart differ: make them equal", key)
		}
	}
	if !strings.Contains(manifest, "--sidecar-image=ghcr.io/idalloc/idalloc:v2") || strings.Contains(manifest, "caBundle:") {
		t.Errorf("no image of the sidecar, or a caBundle that a GitOps tool would put back:\n%s", manifest)
	}
	for minor, webhook := range map[string]bool{"35": true, "36": false} { // NetworkPolicies add up
		if manifest, err = render(t, minor, values{controller: values{"networkPolicy": values{on: true, "from": []any{values{"podSelector": values{}}}}}}); err != nil {
			t.Fatal(err)
		}
		ingress := at(objects(t, []byte(manifest))["NetworkPolicy/idalloc-webhook"], "spec", "ingress")
		if open := reflect.DeepEqual(ingress, []any{object{"ports": []any{object{"port": "webhook"}}}}); open != webhook {
			t.Errorf("for 1.%s anyone reaches the webhook's port: %v", minor, open)
		}
	}
	if manifest, err = render(t, "35", values{controller: values{served: []any{"prod"}}}); err != nil || !strings.Contains(manifest, `values: ["prod"]`) {
		t.Errorf("the webhook is not limited to the controller's namespace: %v", err)
	}
}

// cert-manager's part is not the controller's: it needs neither the Secret nor a right to change the webhook.
func TestCertManagerMakesTheCertificate(t *testing.T) {
	const own, written = "/idalloc-webhook", "idalloc-webhook-certificate"
	by := func(minor string, issuer values) map[string]object {
		manifest, err := render(t, minor, values{"webhook": values{"certManager": values{on: true, "issuerRef": issuer}}})
		if err != nil {
			t.Fatal(err)
		}
		return objects(t, []byte(manifest))
	}
	got := by("35", values{})
	for key, want := range map[string]bool{
		"Issuer" + own: true, "Issuer" + own + "-authority": true, "Certificate" + own + "-authority": true, "Certificate/" + written: true, "Service" + own: true,
		"Secret" + own: false, "Role" + own: false, "RoleBinding" + own: false, "ClusterRole" + own: false, "ClusterRoleBinding" + own: false,
	} {
		if (got[key] != nil) != want {
			t.Errorf("%s is there: %v", key, !want)
		}
	}
	issuer, names := at(got["Certificate/"+written], "spec", "issuerRef"), at(got["Certificate/"+written], "spec", "dnsNames")
	if at(issuer, "name") != "idalloc-webhook-authority" || !reflect.DeepEqual(names, []any{"idalloc-webhook.idalloc-system.svc"}) {
		t.Errorf("the certificate is %v's, for %v", issuer, names)
	}
	if from := at(got["MutatingWebhookConfiguration"+own], "metadata", "annotations", "cert-manager.io/inject-ca-from"); from != "idalloc-system/"+written {
		t.Errorf("the authority comes from %v", from)
	}
	pod := fmt.Sprint(at(got["Deployment/idalloc-controller"], "spec", "template", "spec"))
	for _, part := range []string{"--webhook-certificates=/var/run/webhook", "mountPath:/var/run/webhook name:webhook", "secret:map[secretName:" + written + "]"} {
		if !strings.Contains(pod, part) {
			t.Errorf("the pods have no %s: %s", part, pod)
		}
	}
	got = by("35", values{"kind": "ClusterIssuer", "name": "internal"})
	issuer = at(got["Certificate/"+written], "spec", "issuerRef")
	if got["Issuer"+own] != nil || at(issuer, "kind") != "ClusterIssuer" || at(issuer, "name") != "internal" {
		t.Errorf("the certificate is of %v", issuer)
	}
	if got = by("36", values{}); got["Certificate/"+written] != nil || strings.Contains(fmt.Sprint(got["Deployment/idalloc-controller"]), "webhook") {
		t.Error("there is a certificate without a webhook")
	}
}

// The monitors send what the controller asks for.
func TestTheAPIServerSaysWhoMayScrape(t *testing.T) {
	const own = "/idalloc-controller"
	by := func(authentication bool, pod values) (string, map[string]object, error) {
		pod[on] = true
		manifest, err := render(t, "36", values{controller: values{
			"metrics": values{"authentication": authentication}, "podMonitor": pod, "serviceMonitor": values{on: true}, served: []any{"shop"},
		}})
		return manifest, objects(t, []byte(manifest)), err
	}
	manifest, got, err := by(false, values{})
	if err != nil || strings.Contains(manifest, "--metrics-authentication") || got["ClusterRole"+own+"-metrics"] != nil || strings.Contains(manifest, "scheme:") {
		t.Errorf("%v: without authentication the chart has some:\n%s", err, manifest)
	}
	if _, _, err = by(true, values{}); err == nil || !strings.Contains(err.Error(), "set controller.podMonitor.authorization") {
		t.Errorf("a PodMonitor without a token: %v", err)
	}
	token := values{"credentials": values{"name": "scraper", "key": "token"}}
	manifest, got, err = by(true, values{"authorization": token, "tlsConfig": values{"serverName": "ids"}})
	if err != nil || !strings.Contains(manifest, "- --metrics-authentication\n") {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	rules := func(group, resource string) any {
		return object{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"create"}}
	}
	for want, is := range map[string][2]any{
		"rules": {[]any{rules("authentication.k8s.io", "tokenreviews"), rules("authorization.k8s.io", "subjectaccessreviews")}, at(got["ClusterRole"+own+"-metrics"], "rules")},
		"the controller's account": {
			[]any{object{"kind": "ServiceAccount", "name": "idalloc-controller", "namespace": "idalloc-system"}}, at(got["ClusterRoleBinding"+own+"-metrics"], "subjects"),
		},
		"the Prometheus's token": {
			[]any{object{"port": "metrics", "scheme": "https", "tlsConfig": object{"insecureSkipVerify": true}, "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}}, //nolint:gosec // a path
			at(got["ServiceMonitor"+own], "spec", "endpoints"),
		},
		"your token": {
			[]any{object{"port": "metrics", "scheme": "https", "tlsConfig": object{"serverName": "ids"}, "authorization": token}}, at(got["PodMonitor"+own], "spec", "podMetricsEndpoints"),
		},
	} {
		if !reflect.DeepEqual(is[0], is[1]) {
			t.Errorf("%s: %v, not %v", want, is[1], is[0])
		}
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
		"pattern":     {inject: values{"image": values{"tag": "a'b"}}}, // it stands in a text of an expression
		"minimum":     {controller: values{"replicas": 0}},
		"typo":        {controller: values{"podMonitor": values{"intervall": "30s"}}},
		"issuer":      {"webhook": values{"certManager": values{"issuerRef": "internal"}}},
		"spelling":    {controller: values{"metrics": values{"authorisation": true}}},
		"namespace":   {controller: values{served: []any{"a'"}}},
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
	if !strings.Contains(manifest, "validationActions:\n  - Warn\n  - Audit\n") || strings.Contains(manifest, "aggregate-to-admin") {
		t.Errorf("the values are not in\n%s", manifest)
	}
}

// hack/chart makes them.
func TestTheChartsCopiesAreCurrent(t *testing.T) {
	copies, config := os.DirFS(filepath.Join(folder, "files")), os.DirFS("../../config")
	renamed, count := map[string]string{"rules.yaml": "prometheus/rules.yaml", "dashboard.json": "grafana/idalloc.json"}, 0
	err := fs.WalkDir(copies, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		got, err := fs.ReadFile(copies, path)
		want, wrong := fs.ReadFile(config, cmp.Or(renamed[path], path))
		if count++; err != nil || wrong != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not that of config: run make chart (%v, %v)", path, err, wrong)
		}
		return nil
	})
	if err != nil || count < 20 {
		t.Errorf("the chart has %d copies: %v", count, err)
	}
}

func TestHelmFindsNothingToCorrect(t *testing.T) {
	said, err := helm.Command{Home: t.TempDir()}.Run(t.Context(), nil, "lint", "--strict", "CHART")
	if err != nil || !strings.Contains(said, "icon is recommended") || strings.Count(said, "\n[") != 1 {
		t.Errorf("%v:\n%s", err, said)
	}
}
