package assignment

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// testOwner is the owner of all receipts.
const testOwner = "Deployment/worker"

func TestOwnerLabelValue(t *testing.T) {
	long := strings.Repeat("a", 250)
	seen := map[string]string{}
	for _, owner := range []string{
		testOwner, "StatefulSet/worker", "Job/worker", "Deployment/work.er-7", "Deployment/" + strings.Repeat("a", 52),
		"Deployment/" + strings.Repeat("a", 53), "Deployment/" + long, "StatefulSet/" + long, "Deployment/" + long + "b",
	} {
		value := OwnerLabelValue(owner)
		if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
			t.Errorf("%s: %q is no value of a label: %v", owner, value, bad)
		}
		if other, twice := seen[value]; twice {
			t.Errorf("%s and %s have one label: %q", owner, other, value)
		}
		seen[value] = owner
	}
	if got := OwnerLabelValue("Deployment/" + strings.Repeat("a", 52)); got != "deployment."+strings.Repeat("a", 52) {
		t.Errorf("63 characters become %q", got)
	}
	if got := OwnerLabelValue("Deployment/" + strings.Repeat("a", 53)); len(got) != 40 {
		t.Errorf("a hash of %d characters, not 40: %q", len(got), got)
	}
	if got := OwnerLabelValue(testOwner); got != "deployment.worker" {
		t.Errorf("the label is %q", got)
	}
}

func TestHoldersSelector(t *testing.T) {
	s, err := labels.Parse(HoldersSelector(testOwner))
	if err != nil {
		t.Fatal(err)
	}
	for want, set := range map[bool]labels.Set{
		true:  {receipt.IDLabel: "7", receipt.OwnerLabel: "deployment.worker", "app": "debug"},
		false: {receipt.IDLabel: "7", receipt.OwnerLabel: "deployment.other"},
	} {
		if s.Matches(set) != want {
			t.Errorf("%v selected is %t", set, !want)
		}
	}
}
