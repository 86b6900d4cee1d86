package conformance

import (
	"encoding/json"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Patch is what matters of a patch of a pod.
type Patch struct {
	// Version says that the patch fails if anything has changed on the pod, and Text that it fails if the receipt has.
	Version, Text bool
	// Receipt is the receipt that the patch sets, empty if it sets none.
	Receipt string
}

const (
	annotationsPath = "/metadata/annotations"
	receiptPath     = annotationsPath + "/idalloc.dev~1receipt"
)

// ReadPatch reads a JSON Patch or a merge patch. What it cannot read says nothing.
func ReadPatch(body []byte) (out Patch) {
	var ops []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if json.Unmarshal(body, &ops) != nil {
		var merged struct {
			Metadata struct {
				ResourceVersion string            `json:"resourceVersion"`
				Annotations     map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		_ = json.Unmarshal(body, &merged)
		return Patch{Version: merged.Metadata.ResourceVersion != "", Receipt: merged.Metadata.Annotations[receipt.Key]}
	}
	for _, o := range ops {
		text, _ := o.Value.(string)
		switch {
		case o.Op == "test" && o.Path == "/metadata/resourceVersion":
			out.Version = true
		case o.Op == "test" && (o.Path == receiptPath || o.Path == annotationsPath && o.Value == nil):
			out.Text = true
		case o.Path == receiptPath:
			out.Receipt = text
		}
	}
	return out
}
