package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// policy is a ValidatingAdmissionPolicy as the API server compiles it.
type policy struct {
	conditions, validations, messages plugin.ConditionEvaluator
}

// load compiles the policy in a file.
func load(path string) (*policy, error) {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	var p admissionv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(content, &p); err != nil {
		return nil, err
	}
	compiler, err := plugin.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	// The sentences cannot ask the authorizer.
	asks, says := plugin.OptionalVariableDeclarations{HasAuthorizer: true}, plugin.OptionalVariableDeclarations{}
	for _, v := range p.Spec.Variables {
		if r := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, asks, environment.StoredExpressions); r.Error != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, r.Error)
		}
	}
	var conditions, validations, messages []plugin.ExpressionAccessor
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compiled := &policy{
		conditions:  compiler.CompileCondition(conditions, asks, environment.StoredExpressions),
		validations: compiler.CompileCondition(validations, asks, environment.StoredExpressions),
		messages:    compiler.CompileCondition(messages, says, environment.StoredExpressions),
	}
	return compiled, errors.Join(slices.Concat(compiled.conditions.CompilationErrors(), compiled.validations.CompilationErrors(), compiled.messages.CompilationErrors())...)
}

// cost is what one request costs, in the units in which the API server counts and limits.
type cost struct {
	condition, validations, messages int64
	// allowed: the policy concerns the request, and lets it pass.
	concerned, allowed bool
	took               time.Duration
}

// judge evaluates the policy as the API server does for one request: the sentences also where nothing is refused.
func (p *policy) judge(ctx context.Context, r request) (cost, error) {
	began := time.Now()
	attributes := &admission.VersionedAttributes{Attributes: r.attributes(), VersionedKind: r.kind, VersionedObject: r.object, VersionedOldObject: r.old}
	asked := plugin.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(r.kind))
	var c cost
	evaluate := func(e plugin.ConditionEvaluator, authorizer authorizer.Authorizer) ([]plugin.EvaluationResult, int64, error) {
		results, left, err := e.ForInput(ctx, attributes, asked, plugin.OptionalVariableBindings{Authorizer: authorizer}, nil, math.MaxInt64)
		if err != nil {
			return nil, 0, err
		}
		for _, result := range results {
			if result.Error != nil {
				return nil, 0, result.Error
			}
		}
		return results, math.MaxInt64 - left, nil
	}
	marked, spent, err := evaluate(p.conditions, role{})
	if err != nil {
		return cost{}, err
	}
	c.condition, c.concerned = spent, all(marked)
	if c.concerned {
		valid, spent, err := evaluate(p.validations, role{})
		if err != nil {
			return cost{}, err
		}
		c.validations, c.allowed = spent, all(valid)
		if _, c.messages, err = evaluate(p.messages, nil); err != nil {
			return cost{}, err
		}
	}
	c.took = time.Since(began)
	return c, nil
}

// all tells whether all results are true.
func all(results []plugin.EvaluationResult) bool {
	return !slices.ContainsFunc(results, func(r plugin.EvaluationResult) bool {
		is, isBool := r.EvalResult.Value().(bool)
		return !isBool || !is
	})
}

// role is what a marked account may do: allocate on slots, and patch its workload.
type role struct{}

// Authorize implements authorizer.Authorizer.
func (role) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	marked := a.GetAPIGroup() == "idalloc.dev" && a.GetResource() == "slots" && a.GetVerb() == "allocate"
	if marked || a.GetResource() == "deployments" && a.GetName() == worker && a.GetVerb() == "patch" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
