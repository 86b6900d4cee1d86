package server

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// annotationLimit is Kubernetes' limit of all keys and values of an object's annotations, in bytes.
const annotationLimit = 256 * 1024

// applyPatch returns what a patch makes of v. Its error is the server's refusal.
func applyPatch(v *Version, contentType string, body []byte) (object.Object, *Failure) {
	if len(body) > 3*1024*1024 {
		return nil, &Failure{Code: 413, Reason: "RequestEntityTooLarge", Message: "Request entity too large: limit is 3145728"}
	}
	var patched []byte
	var err error
	switch contentType {
	case "application/json-patch+json":
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err != nil {
			return nil, &Failure{Code: 400, Reason: "BadRequest", Message: err.Error()}
		}
		patched, err = patch.Apply(v.json(false))
	case "application/merge-patch+json", "application/strategic-merge-patch+json": // idalloc's have no lists, which the latter merges in another way
		patched, err = jsonpatch.MergePatch(v.json(false), body)
	default:
		return nil, &Failure{Code: 415, Reason: "UnsupportedMediaType", Message: fmt.Sprintf("the body of the request was in an unknown format - %q", contentType)}
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	var next object.Object
	if err := utiljson.Unmarshal(patched, &next); err != nil {
		return nil, invalid(err.Error())
	}
	size := 0
	for key, value := range object.At(next, object.Metadata, "annotations") {
		s, ok := value.(string)
		if !ok {
			return nil, invalid("annotation " + key + " is not a string")
		}
		size += len(key) + len(s)
	}
	if size > annotationLimit {
		return nil, invalid(fmt.Sprintf("metadata.annotations: Too long: may not be more than %d bytes", annotationLimit))
	}
	return next, nil
}

func invalid(message string) *Failure {
	return &Failure{Code: 422, Reason: "Invalid", Message: "the server rejected our request due to an error in our request: " + message}
}
