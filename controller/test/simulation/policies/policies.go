// Package policies judges the writes of a simulation by the shipped admission policies: what one part of idalloc must write, no policy may refuse.
// It compiles their expressions with the API server's own libraries. It knows what Roles and bindings say only as far as the policies ask for it.
package policies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionrequest "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	api "github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Policies are compiled policies. They are not for several goroutines at once.
type Policies struct {
	all []policy
	// timeless: no expression reads a field in which two renewals of a Lease differ.
	timeless bool
	// known holds the answers to writes of Leases, by keyOf. Renewals are most of all writes.
	known map[string]string
	// asked counts the writes of Leases. Some known answers are computed again, and must be the same.
	asked int
}

type policy struct {
	admissionv1.ValidatingAdmissionPolicy

	// conditions say whether the policy is about a request, and validations whether it permits it. messages say why it does not.
	conditions, validations, messages plugin.ConditionEvaluator
	compiler                          *plugin.CompositedCompiler
}

// Of reads the policies of these files, and compiles their expressions.
func Of(paths ...string) (*Policies, error) {
	out := &Policies{known: map[string]string{}, timeless: true}
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the project
		if err != nil {
			return nil, err
		}
		var p policy
		out.timeless = out.timeless && !slices.ContainsFunc(varying(), func(field string) bool { return bytes.Contains(text, []byte(field)) })
		if err := yaml.UnmarshalStrict(text, &p.ValidatingAdmissionPolicy); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := p.compile(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out.all = append(out.all, p)
	}
	return out, nil
}

// Shipped compiles the policies of config, a folder, that are about what idalloc writes.
func Shipped(config string) (*Policies, error) {
	paths := []string{"policy/policy.yaml", "policy/leases.yaml", "policy/events.yaml", "assign/controller.yaml", "assign/refusal.yaml"}
	for i, path := range paths {
		paths[i] = filepath.Join(config, path)
	}
	return Of(paths...)
}

func (p *policy) compile() error {
	compiler, err := plugin.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return err
	}
	p.compiler = compiler
	with, without := plugin.OptionalVariableDeclarations{HasAuthorizer: true}, plugin.OptionalVariableDeclarations{}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, with, environment.StoredExpressions)
	}
	var conditions, validations, messages []plugin.ExpressionAccessor
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, expression{c.Name, c.Expression, []*cel.Type{cel.BoolType}})
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, expression{"", v.Expression, []*cel.Type{cel.BoolType}})
		messages = append(messages, expression{"", cmp.Or(v.MessageExpression, strconv.Quote(v.Message)), []*cel.Type{cel.StringType}})
	}
	p.conditions = compiler.CompileCondition(conditions, with, environment.StoredExpressions)
	p.validations = compiler.CompileCondition(validations, with, environment.StoredExpressions)
	p.messages = compiler.CompileCondition(messages, without, environment.StoredExpressions)
	return errors.Join(slices.Concat(p.conditions.CompilationErrors(), p.validations.CompilationErrors(), p.messages.CompilationErrors())...)
}

// expression is one of a policy.
type expression struct {
	name, text string
	types      []*cel.Type
}

// GetName implements plugin.NamedExpressionAccessor.
func (e expression) GetName() string { return e.name }

// GetExpression implements plugin.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements plugin.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return e.types }

// varying are the fields in which two renewals of a Lease differ, beside the times of its managedFields, at which policies look for workloads alone.
// The last is of the receipt.
func varying() []string {
	return []string{"renewTime", "acquireTime", "resourceVersion", "generation", `"write"`}
}

// keyOf is equal for two writes of Leases that policies cannot tell apart. They see how long the varying values are, and whether they change.
func keyOf(by world.Account, w api.Write) string {
	next, old := object.Clone(w.Next), object.Clone(w.Old)
	for _, part := range []string{object.Metadata, "spec"} {
		is, was := object.At(next, part), object.At(old, part)
		for _, field := range varying() {
			same := is[field] == was[field]
			blur(is, field)
			if blur(was, field); same && was[field] != nil {
				was[field] = "the same"
			}
		}
	}
	for _, o := range []object.Object{next, old} {
		entries, _ := object.At(o, object.Metadata)["managedFields"].([]any)
		for _, e := range entries {
			if entry, ok := e.(object.Object); ok {
				blur(entry, "time")
			}
		}
		before, rest, found := strings.Cut(object.Annotation(o, receipt.Key), `"write":"`)
		number, after, _ := strings.Cut(rest, `"`)
		if found {
			object.SetText(o, "annotations", receipt.Key, before+strings.Repeat("w", len(number))+after)
		}
	}
	return fmt.Sprint(by, w.Operation, w.Subresource, w.Name) + string(object.Encode([]any{next, old, w.Options}))
}

// blur leaves of a value how long it is.
func blur(o object.Object, field string) {
	if value, there := o[field]; there {
		o[field] = int64(len(fmt.Sprint(value)))
	}
}

// Refuses returns the sentence of a policy that refuses a write, empty if all of them permit it.
func (p *Policies) Refuses(by world.Account, w api.Write) string {
	if w.Kind.Resource != object.Leases || !p.timeless {
		return p.judge(by, w)
	}
	const many, now = 10_000, 100
	key := keyOf(by, w)
	says, known := p.known[key]
	p.asked++
	if known && p.asked%now != 0 {
		return says
	}
	judged := p.judge(by, w)
	if known && judged != says {
		panic(fmt.Sprintf("simulation: policies tell two writes of Lease %s apart: %q and %q", w.Name, says, judged))
	}
	if len(p.known) > many {
		clear(p.known)
	}
	p.known[key] = judged
	return judged
}

func (p *Policies) judge(by world.Account, w api.Write) string {
	for i := range p.all {
		if says := p.all[i].refuses(by, w); says != "" {
			return p.all[i].Name + ": " + says
		}
	}
	return ""
}

func (p *policy) refuses(by world.Account, w api.Write) string {
	if !p.about(w) {
		return ""
	}
	attributes, request := attributesOf(by, w)
	vars := plugin.OptionalVariableBindings{Authorizer: rights{by}}
	evaluate := func(e plugin.ConditionEvaluator, vars plugin.OptionalVariableBindings) []plugin.EvaluationResult {
		results, _, err := e.ForInput(p.compiler.CreateContext(context.Background()), attributes, request, vars, nil, apiservercel.RuntimeCELCostBudget)
		if err != nil {
			return []plugin.EvaluationResult{{Error: err}}
		}
		return results
	}
	for _, r := range evaluate(p.conditions, vars) {
		switch {
		case r.Error != nil:
			return "a condition fails: " + r.Error.Error()
		case r.EvalResult != celtypes.True:
			return ""
		}
	}
	for i, r := range evaluate(p.validations, vars) {
		switch {
		case r.Error != nil:
			return "an expression fails: " + r.Error.Error()
		case r.EvalResult == celtypes.True:
			continue
		}
		if messages := evaluate(p.messages, plugin.OptionalVariableBindings{}); i < len(messages) && messages[i].Error == nil {
			return fmt.Sprint(messages[i].EvalResult.Value())
		}
		return p.Spec.Validations[i].Expression
	}
	return ""
}

// about reports whether the policy matches what is written.
func (p *policy) about(w api.Write) bool {
	resource := w.Kind.Resource
	if w.Subresource != "" {
		resource += "/*"
	}
	if s := p.Spec.MatchConstraints.ObjectSelector; s != nil && !slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		_, old := object.Labels(w.Old)[e.Key]
		_, next := object.Labels(w.Next)[e.Key]
		return old || next
	}) {
		return false
	}
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
		named := slices.Contains(r.Operations, admissionv1.OperationAll) || slices.Contains(r.Operations, admissionv1.OperationType(w.Operation))
		return named && slices.Contains(r.APIGroups, w.Kind.Group) && slices.Contains(r.Resources, resource)
	})
}

func attributesOf(by world.Account, w api.Write) (*admission.VersionedAttributes, *admissionrequest.AdmissionRequest) {
	gv, _ := schema.ParseGroupVersion(w.Kind.APIVersion)
	kind, resource := gv.WithKind(w.Kind.Name), gv.WithResource(w.Kind.Resource)
	who := &user.DefaultInfo{Name: by.Name(), Extra: map[string][]string{
		"authentication.kubernetes.io/pod-name": {by.Pod}, "authentication.kubernetes.io/pod-uid": {by.UID},
	}}
	var old, next runtime.Object
	if w.Old != nil {
		old = &unstructured.Unstructured{Object: w.Old}
	}
	if w.Next != nil {
		next = &unstructured.Unstructured{Object: w.Next}
	}
	var options runtime.Object = &unstructured.Unstructured{Object: w.Options}
	a := admission.NewAttributesRecord(next, old, kind, api.Namespace, w.Name, resource, w.Subresource, admission.Operation(w.Operation), options, false, who)
	v := &admission.VersionedAttributes{Attributes: a, VersionedKind: kind}
	v.VersionedOldObject.Set(old)
	v.VersionedObject.Set(next)
	return v, plugin.CreateAdmissionRequest(a, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
}

// rights are what the Role of an account permits, as far as policies ask.
type rights struct{ world.Account }

// Authorize implements authorizer.UnconditionalAuthorizer. The Role of a peer names its workload, and that of an agent none.
func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	permitted := false
	switch {
	case r.Controls:
	case a.GetResource() == "slots":
		permitted = a.GetVerb() == "allocate" || a.GetVerb() == "lock"
	case a.GetVerb() == "patch" && !r.Agent:
		permitted = a.GetName() != "" && strings.HasSuffix(a.GetResource(), "s")
	}
	if permitted {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
