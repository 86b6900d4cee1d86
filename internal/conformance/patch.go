package conformance

import (
	"encoding/json"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Patch holds the parts of a pod's patch that matter here.
type Patch struct {
	// Version: the patch fails if anything on the pod has changed. Text: it fails if the receipt has changed.
	Version, Text bool
	// Receipt is the new receipt, empty if the patch sets none.
	Receipt string
}

const (
	annotationsPath = "/metadata/annotations"
	receiptPath     = annotationsPath + "/idalloc.dev~1receipt"
)

// ReadPatch reads a JSON Patch or a merge patch. It ignores what it cannot read.
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
