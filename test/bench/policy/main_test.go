package main

import (
	"testing"

	limits "k8s.io/apiserver/pkg/apis/cel"
)

// The API server refuses a request whose evaluation costs more than the limit: idalloc could not write any more.
func TestTheLargestObjectsCostLessThanHalfOfTheLimit(t *testing.T) {
	p, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests() {
		c, err := p.judge(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if c.condition > limits.RuntimeCELCostBudgetMatchConditions/2 || c.validations+c.messages > limits.RuntimeCELCostBudget/2 {
			t.Errorf("%s: the condition costs %d, validations %d, sentences %d", r.name, c.condition, c.validations, c.messages)
		}
		if c.concerned != (r.by.GetName() == account) {
			t.Errorf("%s: whether the policy is about it: %v", r.name, c.concerned)
		}
		if c.concerned && !c.allowed {
			t.Errorf("%s is refused", r.name)
		}
	}
}

func TestAChangeOfAnotherAnnotationIsRefused(t *testing.T) {
	p, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	r := requests()[0]
	foreign := ofDeployment("foreign", r.by, others(1), entrySize, 1)
	foreign.old = ofDeployment("before", r.by, nil, entrySize, 1).old
	c, err := p.judge(t.Context(), foreign)
	if err != nil {
		t.Fatal(err)
	}
	if !c.concerned || c.allowed {
		t.Errorf("the policy is about it: %v, and allows it: %v", c.concerned, c.allowed)
	}
}
