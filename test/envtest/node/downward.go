package node

import (
	"errors"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// project writes the files of the pod's downward API volumes, each in one step. It is called when the pod has its directories, and at each change.
func (p *pod) project() {
	p.projecting.Lock()
	defer p.projecting.Unlock()
	p.mu.Lock()
	object := p.latest
	p.mu.Unlock()
	if object == nil {
		return
	}
	for i := range p.object.Spec.Volumes {
		v := &p.object.Spec.Volumes[i]
		if v.DownwardAPI == nil {
			continue
		}
		for _, item := range v.DownwardAPI.Items {
			if err := p.write(object, filepath.Join(p.dir, "volumes", v.Name, item.Path), item.FieldRef); err != nil {
				p.log.Error(err, "cannot write a file of a downward API volume", "volume", v.Name, "path", item.Path)
			}
		}
	}
}

func (p *pod) write(object *corev1.Pod, path string, ref *corev1.ObjectFieldSelector) error {
	if ref == nil {
		return errors.New("the process node knows only fieldRef there")
	}
	text, err := field(object, p.address, ref.FieldPath)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(path); err == nil && string(was) == text { //nolint:gosec // below the node's directory
		return nil
	}
	// The hidden name stays beside the file, as the kubelet's own do.
	hidden := filepath.Join(filepath.Dir(path), "..new")
	return errors.Join(os.WriteFile(hidden, []byte(text), 0o600), os.Rename(hidden, path))
}
