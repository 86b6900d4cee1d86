package inspect

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/internal/runs"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// checkUnused reports whether neither the owner nor any pod has a trace of idalloc, and says so. If the pods run idalloc all the same, that is wrong.
func (c *checker) checkUnused() bool {
	if c.owner.Record.Present {
		return false
	}
	var without []string
	for _, name := range c.names() {
		p := c.pods[name]
		if p.Receipt.State != receipt.None || c.strays(p) || p.byController {
			return false
		}
		if p.live() && p.runs && c.now.Sub(p.Created) >= startsWithin {
			without = append(without, name)
		}
	}
	if len(without) == 0 {
		c.warnf("%s in namespace %s does not use idalloc, and never did: neither it nor any of its pods has an annotation of idalloc's; "+
			"if it should, its pods have not got so far, and the log of idalloc in one of them says why", c.owner, c.owner.Namespace)
		return true
	}
	c.findings = append(c.findings, Finding{Kind: Unheld, Pod: without[0], Detail: fmt.Sprintf(
		"pods run idalloc (%s), and neither they nor %s has an annotation of idalloc's: see the log of idalloc in pod %s: it may have no way to the API server; "+
			"otherwise look for an admission webhook or policy that removes idalloc.dev/*", few(without), c.owner, without[0])})
	return true
}

// runsIdalloc reports whether idalloc runs in a pod as far as its object says: the sidecar was asked for, or a container's program is idalloc.
func runsIdalloc(pod *unstructured.Unstructured) bool {
	if pod.GetLabels()["idalloc.dev/inject"] == "true" {
		return true
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, c := range containers {
			c, _ := c.(map[string]any)
			image, _, _ := unstructured.NestedString(c, "image")
			command, _, _ := unstructured.NestedStringSlice(c, "command")
			args, _, _ := unstructured.NestedStringSlice(c, "args")
			if runs.Idalloc(image, command, args) {
				return true
			}
		}
	}
	return false
}
