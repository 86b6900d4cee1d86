package inject

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/idalloc/idalloc/internal/runs"
)

// Names of what is added to a pod.
const (
	container   = "idalloc" // the sidecar
	dirVolume   = "idalloc" // holds the published files
	tokenVolume = "idalloc-token"
	dirEnv      = "IDALLOC_DIR"
	urlEnv      = "IDALLOC_URL"
	url         = "http://127.0.0.1:8089"
	user        = "65532" // the image's user, set explicitly where the pod runs as root
)

// parts is what is added to a pod; its settings fill in the rest.
//
//go:embed sidecar.yaml
var parts []byte

// inject adds the sidecar to a workload's template, or updates it, and reports whether that changed anything.
func (w *workload) inject(o Options) (changed bool, err error) {
	s, err := readSettings(w.template, o.Image)
	if err != nil {
		return false, err
	}
	spec := field(w.template, "spec")
	if list(spec, "containers") == nil {
		return false, errNoContainers
	}
	p := pod{spec: spec, settings: s, again: value(w.template, "metadata", "annotations", Injected) == yes}
	if err := p.check(); err != nil {
		return false, err
	}
	if p.changed, err = s.runAs(spec); err != nil {
		return false, err
	}
	if err := p.add(); err != nil {
		return false, err
	}
	if warning := strategyWarning(w.object, s); warning != "" {
		o.Warn(w.name + ": " + warning)
	}
	if !p.again {
		metadata := ensure(w.template, "metadata", yaml.MappingNode)
		put(ensure(metadata, "annotations", yaml.MappingNode), Injected, quoted(yes))
		p.changed = true
	}
	return p.changed, nil
}

// pod edits the pod spec of a template.
type pod struct {
	spec     *yaml.Node
	settings settings
	// again is true if the pod already has the sidecar.
	again bool
	// keeps: do not replace elements that already have one of the names.
	keeps   bool
	changed bool
}

// NoGrace explains why a pod template without a grace period is refused, unless strict mode protects its ids. The policy of config/inject/refusal.yaml has the
// same text.
const NoGrace = "terminationGracePeriodSeconds is 0, so that each deletion of a pod is a force delete, and two pods may act under one id: " +
	"remove it, or use strict mode"

// check explains why the pod cannot have the sidecar, or returns nil.
func (p *pod) check() error {
	if value(p.spec, "terminationGracePeriodSeconds") == "0" && p.settings.fenceAfter == "" {
		return errors.New(NoGrace)
	}
	for _, name := range p.settings.containers {
		if named(list(p.spec, "containers"), "name", name) < 0 && named(list(p.spec, "initContainers"), "name", name) < 0 || name == container {
			return fmt.Errorf("annotation %s names %q, which is no container of the pod: write names of containers, with commas and without spaces between them", containersKey, name)
		}
	}
	own := named(list(p.spec, "containers"), "name", container) >= 0
	if own || !p.again && named(list(p.spec, "initContainers"), "name", container) >= 0 {
		return fmt.Errorf("the pod has a container %s of its own: rename it, because the sidecar has this name", container)
	}
	var second error
	p.each(func(c *yaml.Node, _ bool) {
		if runs.Idalloc(value(c, "image"), texts(list(c, "command")), texts(list(c, "args"))) {
			second = fmt.Errorf("container %s runs idalloc itself, and two of a pod would act under one id: take label %s out of the pod template, or idalloc out of the container", value(c, "name"), Label)
		}
	})
	if second != nil || p.again {
		return second
	}
	for _, name := range []string{dirVolume, tokenVolume} {
		if named(list(p.spec, "volumes"), "name", name) >= 0 {
			return fmt.Errorf("the pod has a volume %s of its own: rename it, because a volume of the sidecar has this name", name)
		}
	}
	var errs []error
	p.each(func(c *yaml.Node, sees bool) { errs = append(errs, p.checkContainer(c, sees)) })
	return errors.Join(errs...)
}

func (p *pod) checkContainer(c *yaml.Node, sees bool) error {
	if named(list(c, "env"), "name", dirEnv) >= 0 || named(list(c, "env"), "name", urlEnv) >= 0 {
		return fmt.Errorf("container %s sets %s or %s itself: remove it there, because it comes with the sidecar", value(c, "name"), dirEnv, urlEnv)
	}
	if sees && named(list(c, "volumeMounts"), "mountPath", p.settings.dir) >= 0 {
		return fmt.Errorf("container %s mounts a volume of its own at %s: name another directory in annotation %s", value(c, "name"), p.settings.dir, dirKey)
	}
	return nil
}

// each calls f with each container but the sidecar, and with whether the container should see the id.
func (p *pod) each(f func(c *yaml.Node, sees bool)) {
	names := p.settings.containers
	for _, c := range elements(list(p.spec, "initContainers")) {
		if name := value(c, "name"); name != container {
			f(c, slices.Contains(names, name))
		}
	}
	for _, c := range elements(list(p.spec, "containers")) {
		f(c, len(names) == 0 || slices.Contains(names, value(c, "name")))
	}
}

// add adds the sidecar and its volumes to the pod.
func (p *pod) add() error {
	var root yaml.Node
	if err := yaml.Unmarshal(parts, &root); err != nil {
		return err
	}
	all := root.Content[0]
	sidecar := field(all, "sidecar")
	put(sidecar, "image", scalar(p.settings.image))
	args := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, arg := range p.settings.args() {
		args.Content = append(args.Content, scalar(arg))
	}
	put(sidecar, "args", args)
	p.settings.resources(sidecar)
	if value(p.spec, "securityContext", "runAsUser") == "0" {
		put(field(sidecar, "securityContext"), "runAsUser", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: user})
	}
	put(list(sidecar, "volumeMounts").Content[0], "mountPath", scalar(p.settings.dir))

	p.each(p.show)
	p.set(p.spec, "initContainers", "name", sidecar, p.first())
	for _, volume := range list(all, "volumes").Content {
		p.set(p.spec, "volumes", "name", volume, -1)
	}
	return nil
}

// first returns the index of the first init container that should see the id, or -1. The sidecar stands before that container. With -1 it is the last init
// container, so that a pod asks for an id only when it can work, and no other pod waits for its other init containers.
func (p *pod) first() int {
	return slices.IndexFunc(elements(list(p.spec, "initContainers")), func(c *yaml.Node) bool {
		return slices.Contains(p.settings.containers, value(c, "name"))
	})
}

// show gives a container the directory and the environment. It removes them from a container that should not see the id but had them.
func (p *pod) show(c *yaml.Node, sees bool) {
	if !sees {
		for _, k := range []struct{ list, name string }{{"env", dirEnv}, {"env", urlEnv}, {"volumeMounts", dirVolume}} {
			p.changed = p.again && drop(c, k.list, k.name) || p.changed
		}
		return
	}
	p.set(c, "env", "name", mapping("name", dirEnv, "value", p.settings.dir), -1)
	p.set(c, "env", "name", mapping("name", urlEnv, "value", url), -1)
	mount := mapping("name", dirVolume, "mountPath", p.settings.dir)
	put(mount, "readOnly", boolean(true))
	by := "mountPath"
	if p.again { // the annotation may have named another directory before
		by = "name"
	}
	p.set(c, "volumeMounts", by, mount, -1)
}

// set puts an element into a list. It replaces the element with the same value of the key by. If there is none, it inserts the element at the index, or at the
// end if the index is -1.
func (p *pod) set(parent *yaml.Node, key, by string, element *yaml.Node, index int) {
	l := ensure(parent, key, yaml.SequenceNode)
	at := named(l, by, value(element, by))
	switch {
	case at >= 0 && (p.keeps || same(l.Content[at], element)):
		return
	case at >= 0:
		old := l.Content[at]
		element.HeadComment, element.LineComment, element.FootComment = old.HeadComment, old.LineComment, old.FootComment
		l.Content[at] = element
	case index >= 0:
		l.Content = slices.Insert(l.Content, index, element)
	default:
		l.Content = append(l.Content, element)
	}
	p.changed = true
}
