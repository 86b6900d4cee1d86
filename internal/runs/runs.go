// Package runs detects containers that run idalloc, by their pod or pod template. Injection refuses such a container, and verify expects annotations on its pod.
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
