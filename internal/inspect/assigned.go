package inspect

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	// gate is the scheduling gate behind which a pod waits for an id of the controller.
	gate = "idalloc.dev/id"
	// givenKey is the annotation from which the program reads its id. Only a confirmed lock has one.
	givenKey = "idalloc.dev/id"
	// evictKey is the owner's annotation that says how many ids may be without an available pod because the controller removes pods.
	evictKey = "idalloc.dev/evict"
	// never turns these removals off.
	never = "never"
	// checks is the command that says what is wrong with the controller.
	checks = "`kubectl idalloc check`"
)

// assigned is what a pod shows of an id that the controller gives.
type assigned struct {
	// byController says that the controller writes the pod's receipt.
	byController bool
	// gated says that the pod waits behind idalloc's gate, and gates are others.
	gated bool
	gates []string
	// given is the id that the program reads, empty before it has one.
	given string
}

func assignedOf(u *unstructured.Unstructured) assigned {
	a := assigned{byController: u.GetLabels()[receipt.AssignLabel] == receipt.ByController, given: u.GetAnnotations()[givenKey]}
	gates, _, _ := unstructured.NestedSlice(u.Object, "spec", "schedulingGates")
	for _, g := range gates {
		m, _ := g.(map[string]any)
		if name, _ := m["name"].(string); name == gate {
			a.gated = true
		} else {
			a.gates = append(a.gates, name)
		}
	}
	return a
}

// checkAssigned finds pods that asked the controller for an id and run without one.
func (c *checker) checkAssigned() {
	for _, name := range c.names() {
		if p := c.pods[name]; p.byController && p.live() && !p.Terminating && !p.gated && p.given == "" {
			c.findings = append(c.findings, Finding{Kind: Ungated, Pod: name, Detail: fmt.Sprintf(
				"pod %s has label %s and no scheduling gate, so its program runs without an id: see %s for the policy that adds the gate, and run %s",
				name, receipt.AssignLabel, checks, c.deletion(name))})
		}
	}
}

// gives reports whether the controller removes the pod when a newer one waits for its id.
func (n snapshot) gives(p pod) bool { return p.byController && n.owner.Rolls() && n.evict != never }

// behind says why a pod waits behind its gates.
func (p pod) behind() []string {
	switch {
	case len(p.gates) > 0:
		return []string{"the pod has other scheduling gates (" + strings.Join(p.gates, ", ") + "): it gets an id when idalloc's gate is the last"}
	case p.gated:
		return []string{"the pod waits behind the scheduling gate " + gate + ", which idalloc-controller removes when it has given the pod an id; if an id is free and the pod waits on, see " + checks}
	}
	return nil
}

// locker names the program that writes the pod's receipt.
func (p pod) locker() string {
	if p.byController {
		return "idalloc-controller"
	}
	return "idalloc in the pod"
}
