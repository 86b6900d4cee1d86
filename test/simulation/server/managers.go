package server

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// sign notes in metadata.managedFields which field manager wrote last, and when. It does not note which fields it wrote: idalloc does not look at that.
func sign(meta object.Object, manager string) {
	const field = "managedFields"
	old, _ := meta[field].([]any)
	entries := slices.DeleteFunc(slices.Clone(old), func(e any) bool {
		entry, _ := e.(object.Object)
		return object.Text(entry, "manager") == manager
	})
	meta[field] = append(entries, object.Object{
		"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time.Now().UTC().Format(time.RFC3339),
	})
}
