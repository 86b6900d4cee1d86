package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxLabel is how long Kubernetes lets a label's value be.
	maxLabel = 63
	// hashLength is how many characters of a hash stand for an owner whose name is too long.
	hashLength = 40
)

// OwnerLabelValue returns the value of OwnerLabel for owner ("Kind/name"): "deployment.worker", or, where that is
// too long for a label, a hash of it, which has no dot. Names of objects have no characters that a
// label may not have.
func OwnerLabelValue(owner string) string {
	kind, name, _ := strings.Cut(owner, "/")
	value := strings.ToLower(kind) + "." + name
	if len(value) <= maxLabel {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// HoldersSelector selects the pods that have a receipt for a slot of owner ("Kind/name"), whatever else
// somebody made of their labels.
func HoldersSelector(owner string) string {
	return InstanceIDLabel + "," + OwnerLabel + "=" + OwnerLabelValue(owner)
}
