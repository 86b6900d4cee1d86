package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	// maxLabel is the number of characters that Kubernetes allows in a label's value.
	maxLabel = 63
	// hashLength is the number of hexadecimal digits that replace an owner name that is too long.
	hashLength = 40
)

// OwnerLabelValue returns the value of receipt.OwnerLabel for an owner ("Kind/name"), for example "deployment.worker". If that is too long for a label, it
// returns 40 hexadecimal digits of the SHA-256 instead, which contain no dot. A label allows every character of an object name.
func OwnerLabelValue(owner string) string {
	kind, name, _ := strings.Cut(owner, "/")
	value := strings.ToLower(kind) + "." + name
	if len(value) <= maxLabel {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// HoldersSelector returns a label selector for the pods that have a receipt for a slot of the owner ("Kind/name"). It finds them even if their other labels
// were changed.
func HoldersSelector(owner string) string {
	return receipt.IDLabel + "," + receipt.OwnerLabel + "=" + OwnerLabelValue(owner)
}
