// Package runs says whether a container runs idalloc, as far as its pod or pod template says. Injection refuses such a container, and
// verify misses the annotations of its pod.
package runs

import (
	"path"
	"slices"
	"strings"
)

// Idalloc reports whether idalloc is the first word that a container starts, or its image if it has no command.
func Idalloc(image string, command, args []string) bool {
	const name = "idalloc"
	if words := slices.Concat(command, args); len(words) > 0 && path.Base(words[0]) == name {
		return true
	}
	image, _, _ = strings.Cut(path.Base(image), "@")
	image, _, _ = strings.Cut(image, ":")
	return len(command) == 0 && image == name
}
