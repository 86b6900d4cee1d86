package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment holds a container's variables twice: as its spec declares them,
// for $(VAR) in other fields, and with volumes' real directories, for the
// process. Replacing paths twice could hit a part of a real directory's name.
type environment struct {
	declared, real map[string]string
}

func (e environment) list() []string {
	list := make([]string, 0, len(e.real))
	for _, name := range slices.Sorted(maps.Keys(e.real)) {
		list = append(list, name+"="+e.real[name])
	}
	return list
}

func (c *container) environment() (environment, error) {
	p := c.pod
	base := map[string]string{"PATH": searchPath, "HOME": p.home(), "TMPDIR": p.tmp()}
	if p.kubeconfig != "" {
		base["KUBECONFIG"] = p.kubeconfig
	}
	e := environment{declared: base, real: maps.Clone(base)}
	mounts := c.mounts()
	for _, variable := range c.spec.Env {
		if source := variable.ValueFrom; source != nil {
			value, err := c.valueFrom(source)
			if err != nil {
				return e, fmt.Errorf("container %s, variable %s: %w", c.spec.Name, variable.Name, err)
			}
			e.declared[variable.Name], e.real[variable.Name] = value, value
			continue
		}
		value := expand(variable.Value, e.declared)
		e.declared[variable.Name], e.real[variable.Name] = value, mounts.replace(value)
	}
	return e, nil
}

func (c *container) valueFrom(source *corev1.EnvVarSource) (string, error) {
	p := c.pod
	if ref := source.ResourceFieldRef; ref != nil { // of its own container, undivided
		name, is := strings.CutPrefix(ref.Resource, "limits.")
		if amount, has := c.spec.Resources.Limits[corev1.ResourceName(name)]; is && has {
			return strconv.FormatInt(amount.Value(), 10), nil
		}
		return "", fmt.Errorf("the process node knows only limits that are set, and not %s", ref.Resource)
	}
	if ref := source.SecretKeyRef; ref != nil {
		secret, err := p.node.client.CoreV1().Secrets(p.object.Namespace).Get(p.ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(secret.Data[ref.Key]), nil
	}
	if source.FieldRef == nil {
		return "", errors.New("the process node knows only fieldRef, secretKeyRef and resourceFieldRef in valueFrom")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	object := p.latest
	if object == nil {
		object = p.object
	}
	return field(object, p.address, source.FieldRef.FieldPath)
}

// field returns what a fieldRef names.
func field(object *corev1.Pod, address, path string) (string, error) {
	if key, ok := subscript(path, "metadata.labels"); ok {
		return object.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return object.Annotations[key], nil
	}
	switch path {
	case "metadata.name":
		return object.Name, nil
	case "metadata.namespace":
		return object.Namespace, nil
	case "metadata.uid":
		return string(object.UID), nil
	case "spec.nodeName":
		return object.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return object.Spec.ServiceAccountName, nil
	case "status.podIP":
		return address, nil
	default:
		return "", fmt.Errorf("the process node does not know fieldPath %q", path)
	}
}

// subscript takes key out of prefix['key'].
func subscript(path, prefix string) (key string, ok bool) {
	key, ok = strings.CutPrefix(path, prefix+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}

// expand replaces $(VAR) by its value, as a kubelet does: an unknown variable
// stays as it is, and $$ is a dollar sign that starts no variable.
func expand(text string, variables map[string]string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:i])
		text = text[i:]
		consumed := 1
		replacement := "$"
		switch text[1] {
		case '$':
			consumed = 2
		case '(':
			if end := strings.IndexByte(text, ')'); end > 0 {
				consumed, replacement = end+1, text[:end+1]
				if value, ok := variables[text[2:end]]; ok {
					replacement = value
				}
			}
		}
		out.WriteString(replacement)
		text = text[consumed:]
	}
}
