package enable

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

const (
	makes  = "ServiceAccount"
	binds  = "RoleBinding"
	deploy = "deployment"
	// account is that which is made for the Deployment, and its Role.
	account = "worker-idalloc"
)

func worker(t *testing.T, kind, template string) (kinds.Ref, *unstructured.Unstructured) {
	t.Helper()
	ref, err := kinds.ParseRef(kind+"/worker", "shop")
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec: {template: {"+template+"}}"), &u.Object); err != nil {
		t.Fatal(err)
	}
	return ref, u
}

// Each ordinary deletion of such a pod is a force delete. Only strict mode is safe then.
func TestAWorkloadWithoutAGracePeriodIsRefused(t *testing.T) {
	ref, whole := worker(t, deploy, "spec: {}")
	if err := unstructured.SetNestedField(whole.Object, int64(0), "spec", "template", "spec", "terminationGracePeriodSeconds"); err != nil {
		t.Fatal(err)
	}
	if _, err := For(ref, whole, Options{AccountOnly: true}); err == nil || !strings.Contains(err.Error(), "terminationGracePeriodSeconds is 0") {
		t.Errorf("without strict mode the error is %v", err)
	}
	if _, err := For(ref, whole, Options{Strict: true}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, template string
		options        Options
		want           []string
		account, says  string
	}{
		"a plain Deployment":          {deploy, "spec: {}", Options{}, []string{makes, "Role", binds, kinds.Deployment}, account, ""},
		"the default account is none": {"sts", "spec: {serviceAccountName: default}", Options{}, []string{makes, "Role", binds, "StatefulSet"}, "worker-statefulset-idalloc", ""},
		"an account of its own":       {deploy, "spec: {serviceAccountName: shop}", Options{}, []string{"Role", binds, kinds.Deployment}, "shop", ""},
		"an account by annotation":    {deploy, "metadata: {annotations: {inject.idalloc.dev/service-account: ids}}", Options{}, []string{"Role", binds, kinds.Deployment}, "ids", ""},
		"it has the label alone":      {deploy, `metadata: {labels: {idalloc.dev/inject: "true"}}`, Options{}, []string{makes, "Role", binds, kinds.Deployment}, account, ""},
		"the label and an account":    {deploy, `metadata: {labels: {idalloc.dev/inject: "true"}}, spec: {serviceAccountName: shop}`, Options{}, []string{"Role", binds}, "shop", ""},
		"the sidecar and no account":  {deploy, "spec: {containers: [{name: idalloc}]}", Options{}, []string{makes, "Role", binds}, account, "serviceAccountName: worker-idalloc"},
		"a Job with the marks":        {"job", `metadata: {labels: {idalloc.dev/inject: "true"}, annotations: {inject.idalloc.dev/service-account: ids}}`, Options{}, []string{"Role", binds}, "ids", ""},
		"only the account, marked":    {deploy, `metadata: {labels: {idalloc.dev/inject: "true"}, annotations: {inject.idalloc.dev/service-account: ids}}`, Options{AccountOnly: true}, []string{"Role", binds}, "ids", "serviceAccountName: ids"},
		"it has the sidecar":          {deploy, "spec: {serviceAccountName: shop, initContainers: [{name: idalloc}]}", Options{}, []string{"Role", binds}, "shop", ""},
		"a Job cannot be changed":     {"job", "spec: {}", Options{}, []string{makes, "Role", binds}, "worker-job-idalloc", "cannot be changed"},
		"agents":                      {deploy, "spec: {}", Options{By: inject.ByAgent}, []string{makes, "Role", binds, kinds.Deployment}, account, ""},
		"a peer to be an agent":       {deploy, `metadata: {labels: {idalloc.dev/inject: "true"}}, spec: {serviceAccountName: shop}`, Options{By: inject.ByAgent}, []string{"Role", binds, kinds.Deployment}, "shop", ""},
		"an agent by its labels":      {deploy, `metadata: {labels: {idalloc.dev/inject: "true", idalloc.dev/assign: agent}}, spec: {serviceAccountName: shop}`, Options{}, []string{"Role", binds}, "shop", ""},
		"a program that is no agent":  {deploy, "spec: {serviceAccountName: shop, containers: [{name: idalloc}]}", Options{By: inject.ByAgent}, []string{"Role", binds}, "shop", "set label idalloc.dev/assign: agent in the pod template"},
		"a Job of agents":             {"job", "spec: {}", Options{By: inject.ByAgent}, []string{makes, "Role", binds}, "worker-job-idalloc", `idalloc.dev/inject: "true", label idalloc.dev/assign: agent and annotation`},
		"an agent to be a peer":       {deploy, `metadata: {labels: {idalloc.dev/inject: "true", idalloc.dev/assign: agent}}, spec: {serviceAccountName: shop}`, Options{By: inject.BySidecar}, []string{"Role", binds, kinds.Deployment}, "shop", "if you set label idalloc.dev/assign: agent yourself, remove it"},
		"an agent to plan itself":     {deploy, "metadata: {labels: {idalloc.dev/assign: agent}}, spec: {serviceAccountName: shop, containers: [{name: idalloc}]}", Options{By: inject.BySidecar}, []string{"Role", binds}, "shop", "remove label idalloc.dev/assign: agent from the pod template"},
		"only the account":            {deploy, "spec: {}", Options{AccountOnly: true}, []string{makes, "Role", binds}, account, "serviceAccountName: worker-idalloc"},
	} {
		ref, whole := worker(t, tc.kind, tc.template)
		p, err := For(ref, whole, tc.options)
		made := make([]string, 0, len(p.Objects))
		for _, o := range p.Objects {
			made = append(made, o.GetKind())
			if subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects"); len(subjects) > 0 && !strings.Contains(fmt.Sprint(subjects), "name:"+tc.account+" ") {
				t.Errorf("%s: the Role is bound to %v", name, subjects)
			}
		}
		if err != nil || !reflect.DeepEqual(made, tc.want) || !strings.Contains(strings.Join(p.Notes, "\n"), tc.says) || (len(p.Notes) > 0) != (tc.says != "") {
			t.Errorf("%s: %v %v %v", name, err, made, p.Notes)
		}
	}
}

// The controller gives such pods their ids, and the policies refuse the sidecar beside that.
func TestAWorkloadOfTheControllerNeedsNoSidecar(t *testing.T) {
	ref, whole := worker(t, deploy, "metadata: {labels: {idalloc.dev/assign: controller}}")
	for _, by := range []string{"", inject.BySidecar} {
		if p, err := For(ref, whole, Options{By: by}); err == nil || !strings.Contains(err.Error(), "remove the label first") || p.Objects != nil {
			t.Errorf("%q: %v, %v", by, p, err)
		}
	}
	if p, err := For(ref, whole, Options{By: inject.ByAgent}); err != nil || len(p.Objects) != 4 {
		t.Errorf("to be an agent: %v, %v", p, err)
	}
}

// The Role is the one of the component.
func TestTheRoleIsTheComponents(t *testing.T) {
	text, err := os.ReadFile("../../config/component/account.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ref, whole := worker(t, deploy, "spec: {}")
	p, err := For(ref, whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for k, document := range strings.Split(strings.ReplaceAll(string(text), "OWNER", "worker"), "---\n") {
		want := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &want.Object); err != nil {
			t.Fatal(err)
		}
		got := p.Objects[k].DeepCopy()
		unstructured.RemoveNestedField(got.Object, "metadata", "namespace")
		if want.GetKind() == binds { // a subject needs its namespace where no kustomization sets it
			for _, s := range got.Object["subjects"].([]any) { //nolint:forcetypeassert,errcheck // a test's own object
				delete(s.(map[string]any), "namespace") //nolint:forcetypeassert,errcheck // the same
			}
		}
		if !reflect.DeepEqual(got.Object, want.Object) {
			t.Errorf("%s is\n%v\nand config/component has\n%v", want.GetKind(), got.Object, want.Object)
		}
	}
}

// That of an agent has no right on any workload. In strict mode it names its Leases by their label, because the policy cannot tell by anything else.
func TestTheRoleOfAnAgentIsThatOfConfig(t *testing.T) {
	text, err := os.ReadFile("../../config/agent/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &want.Object); err != nil {
		t.Fatal(err)
	}
	usual, strict := rules(t, Options{By: inject.ByAgent}), rules(t, Options{By: inject.ByAgent, Strict: true})
	if !reflect.DeepEqual(any(usual), want.Object["rules"]) {
		t.Errorf("the rules are\n%v\nand config/agent has\n%v", usual, want.Object["rules"])
	}
	lock := rule("idalloc.dev", "slots", "deployment.worker", "lock")
	if len(strict) != len(usual)+2 || !reflect.DeepEqual(strict[len(usual)], any(lock)) {
		t.Errorf("in strict mode the rules are %v", strict)
	}
}

// Pods that are to plan again write the workload. So they need the other Role.
func TestTheRoleOfAnAgentThatIsToBeAPeer(t *testing.T) {
	ref, whole := worker(t, deploy, `metadata: {labels: {idalloc.dev/inject: "true", idalloc.dev/assign: agent}}, spec: {serviceAccountName: shop}`)
	p, err := For(ref, whole, Options{By: inject.BySidecar})
	if err != nil {
		t.Fatal(err)
	}
	if p.Role != account || p.PeersRole != "" || !reflect.DeepEqual(p.Objects[0].Object["rules"], any(rules(t, Options{}))) {
		t.Errorf("Role %s has %v", p.Role, p.Objects[0].Object["rules"])
	}
}

// In strict mode the Role has the rule of config/strict besides.
func TestTheRoleOfStrictMode(t *testing.T) {
	text, err := os.ReadFile("../../config/strict/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		Patches []struct{ Patch string }
	}
	if err := yaml.Unmarshal(text, &component); err != nil || len(component.Patches) != 1 {
		t.Fatalf("%v: %v", err, component)
	}
	var patch []struct {
		Path  string
		Value map[string]any
	}
	if err := yaml.Unmarshal([]byte(component.Patches[0].Patch), &patch); err != nil || len(patch) != 1 || patch[0].Path != "/rules/-" {
		t.Fatalf("%v: %v", err, patch)
	}
	if usual, strict := rules(t, Options{}), rules(t, Options{Strict: true}); !reflect.DeepEqual(strict, append(usual, patch[0].Value)) {
		t.Errorf("the rules are %v", strict)
	}
}

// The label of a workload with a long name is a hash, and the Role says that its pods may have it.
func TestTheRoleOfALongName(t *testing.T) {
	for name, want := range map[string]bool{"worker": false, strings.Repeat("a", 52): false, strings.Repeat("a", 53): true} {
		ref, whole := worker(t, deploy, "spec: {}")
		ref.Name = name
		p, err := For(ref, whole, Options{})
		if err != nil {
			t.Fatal(err)
		}
		rules, _, err := unstructured.NestedSlice(p.Objects[1].Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		lock := rule("idalloc.dev", "slots", assignment.OwnerLabelValue(ref.String()), "lock")
		if got := reflect.DeepEqual(rules[len(rules)-1], any(lock)); got != want {
			t.Errorf("%s: the last of the rules is %v", name, rules[len(rules)-1])
		}
	}
}

// rules returns those of the Role for a plain Deployment.
func rules(t *testing.T, o Options) []any {
	t.Helper()
	ref, whole := worker(t, deploy, "spec: {}")
	p, err := For(ref, whole, o)
	if err != nil {
		t.Fatal(err)
	}
	rules, _, err := unstructured.NestedSlice(p.Objects[1].Object, "rules")
	if err != nil || p.Objects[1].GetKind() != "Role" {
		t.Fatalf("%s: %v", p.Objects[1].GetKind(), err)
	}
	return rules
}

// The marks name an account only where the template names none, and a container of another name is not the sidecar.
func TestTheMarks(t *testing.T) {
	for name, tc := range map[string]struct {
		template, want string
		by             string
	}{
		"no account":            {"spec: {containers: [{name: main}]}", "map[annotations:map[inject.idalloc.dev/service-account:worker-idalloc] labels:map[idalloc.dev/inject:true]]", ""},
		"an account of its own": {"spec: {serviceAccountName: shop, containers: [{name: main}]}", "map[labels:map[idalloc.dev/inject:true]]", ""},
		"an agent":              {"spec: {serviceAccountName: shop, containers: [{name: main}]}", "map[labels:map[idalloc.dev/assign:agent idalloc.dev/inject:true]]", inject.ByAgent},
	} {
		ref, whole := worker(t, deploy, tc.template)
		p, err := For(ref, whole, Options{By: tc.by})
		if err != nil {
			t.Fatal(err)
		}
		last := p.Objects[len(p.Objects)-1]
		meta, _, err := unstructured.NestedMap(last.Object, "spec", "template", "metadata")
		if err != nil || last.GetKind() != kinds.Deployment || last.GetName() != "worker" || fmt.Sprint(meta) != tc.want {
			t.Errorf("%s: %s gets %v, %v, want %s", name, last.GetName(), meta, err, tc.want)
		}
	}
}

func TestAWorkloadWithoutATemplate(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"none":      {"spec": map[string]any{}},
		"no object": {"spec": map[string]any{"template": "main"}},
	} {
		ref, _ := worker(t, deploy, "")
		p, err := For(ref, &unstructured.Unstructured{Object: object}, Options{})
		if err == nil || !strings.Contains(err.Error(), "Deployment/worker in namespace shop has no pod template") || p.Objects != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}
