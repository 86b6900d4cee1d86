package node

import (
	"path/filepath"
	"slices"
	"strings"
)

type mount struct{ path, dir string }

// mounts are a container's volume mounts, the longest path first.
type mounts []mount

func (c *container) mounts() mounts {
	m := make(mounts, 0, len(c.spec.VolumeMounts))
	for _, volume := range c.spec.VolumeMounts {
		m = append(m, mount{
			path: filepath.Clean(volume.MountPath),
			dir:  filepath.Join(c.pod.volumes[volume.Name], volume.SubPath),
		})
	}
	slices.SortFunc(m, func(a, b mount) int { return len(b.path) - len(a.path) })
	return m
}

// replace puts the real directory in the place of each mount path in text. A
// mount path counts only where a path begins, and only as whole elements: /data
// is not found in /var/data or /database.
func (m mounts) replace(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		found := m.at(text, i)
		if found == nil {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(found.dir)
		i += len(found.path)
	}
	return out.String()
}

// at returns the mount whose path stands at text[i].
func (m mounts) at(text string, i int) *mount {
	if text[i] != '/' || i > 0 && inPath(text[i-1]) {
		return nil
	}
	for k := range m {
		rest, ok := strings.CutPrefix(text[i:], m[k].path)
		if ok && (rest == "" || rest[0] == '/' || !inPath(rest[0])) {
			return &m[k]
		}
	}
	return nil
}

// inPath says whether a character may be part of a path's element.
func inPath(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-/", c) >= 0
}
