package inject

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/idalloc/idalloc/internal/runs"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// AssignLabel asks idalloc-controller to plan for the pods of a template. Its value is ByController or ByAgent.
const AssignLabel = receipt.AssignLabel

const (
	// ByController has idalloc-controller assign the id before the pod starts.
	ByController = receipt.ByController
	// ByAgent has a sidecar of the pod lock the id that idalloc-controller proposes.
	ByAgent = receipt.ByAgent
)

// Names of what is added to such a pod.
const (
	gate       = "idalloc.dev/id"
	idEnv      = "IDALLOC_ID"
	countEnv   = "IDALLOC_COUNT"
	idVolume   = "idalloc"
	idDir      = "/var/run/idalloc"
	idField    = "metadata.annotations['idalloc.dev/id']"
	countField = "metadata.annotations['idalloc.dev/start-count']"

	numberEnv   = "IDALLOC_NUMBER"
	numberField = "metadata.annotations['idalloc.dev/number']"
)

// assignParts is what is added to a pod. The policy of config/assign adds the same.
//
//go:embed assign.yaml
var assignParts []byte

// assign adds the gate, the variables and the files of the id to a workload's template, and the watcher if the template asks for restarts. It reports whether
// that changed anything. With keeps, it only adds what is missing and replaces nothing.
func (w *workload) assign(image string, keeps bool) (changed bool, err error) {
	spec := field(w.template, "spec")
	if list(spec, "containers") == nil {
		return false, errNoContainers
	}
	if err := errors.Join(checkAssigned(w.template, spec), w.checkCount(spec), w.checkNumber()); err != nil {
		return false, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(assignParts, &root); err != nil {
		return false, err
	}
	all := root.Content[0]
	p := pod{spec: spec, keeps: keeps}
	env := elements(list(all, "env"))
	p.set(spec, "schedulingGates", "name", field(all, "gate"), -1)
	if w.number() != nil {
		env = append(env, descend(all, "number", "env"))
		p.number(all)
	}
	p.set(spec, "volumes", "name", field(all, "volume"), -1)
	if w.onCount() == assignment.OnCountRestart {
		p.watch(all, cmp.Or(value(w.template, "metadata", "annotations", imageKey), image))
	}
	for _, c := range containers(spec) {
		p.variables(c, env)
		p.set(c, "volumeMounts", "mountPath", clone(field(all, "mount")), -1)
	}
	return w.mark(AssignLabel, ByController) || p.changed, nil
}

// number adds the file of the machine number to those of the id, also where the pod has their volume already.
func (p *pod) number(all *yaml.Node) {
	file := descend(all, "number", "file")
	files := list(descend(all, "volume", "downwardAPI"), "items")
	files.Content = append(files.Content, file)
	volumes := list(p.spec, "volumes")
	if at := named(volumes, "name", idVolume); at >= 0 && p.keeps {
		p.set(field(volumes.Content[at], "downwardAPI"), "items", "path", clone(file), -1)
	}
}

// watch adds the container that restarts all others. It comes first, so that the others start with its count or a later one.
func (p *pod) watch(all *yaml.Node, image string) {
	watcher := field(all, "watcher")
	put(watcher, "image", scalar(image))
	if value(p.spec, "securityContext", "runAsUser") == "0" {
		put(field(watcher, "securityContext"), "runAsUser", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: user})
	}
	for _, volume := range elements(list(all, "watcherVolumes")) {
		p.set(p.spec, "volumes", "name", volume, -1)
	}
	if at := named(list(p.spec, "initContainers"), "name", assignment.CountWatcher); at < 0 {
		p.set(p.spec, "initContainers", "name", watcher, 0)
	}
}

// onCount returns what the template asks for when the count changes.
func (w *workload) onCount() string {
	return value(w.template, "metadata", "annotations", assignment.OnCountKey)
}

// checkCount explains why the pods of a template cannot do what it asks for when the count changes, or returns nil.
func (w *workload) checkCount(spec *yaml.Node) error {
	switch on := w.onCount(); {
	case on == "" && field(descend(w.template, "metadata", "annotations"), assignment.OnCountKey) == nil, on == assignment.OnCountKeep:
	case on == assignment.OnCountReplace && w.ofJob():
		return fmt.Errorf("a Job counts a pod that is evicted as failed: set annotation %s to %q or %q", assignment.OnCountKey, assignment.OnCountKeep, assignment.OnCountRestart)
	case on == assignment.OnCountRestart:
		return nil
	case on != assignment.OnCountReplace:
		return fmt.Errorf("annotation %s is %q: use %q, %q or %q, or remove it", assignment.OnCountKey, on, assignment.OnCountKeep, assignment.OnCountRestart, assignment.OnCountReplace)
	}
	if slices.ContainsFunc(containers(spec), func(c *yaml.Node) bool { return value(c, "name") == assignment.CountWatcher }) {
		return fmt.Errorf("container %s would restart all pods at once: remove it, or set annotation %s to %q", assignment.CountWatcher, assignment.OnCountKey, assignment.OnCountRestart)
	}
	return nil
}

// number returns the first machine number that the template asks for, or nil.
func (w *workload) number() *yaml.Node {
	return field(descend(w.template, "metadata", "annotations"), assignment.FirstNumberKey)
}

// checkNumber explains why the template's first machine number is invalid, or returns nil.
func (w *workload) checkNumber() error {
	if n := w.number(); n != nil {
		if _, problem := assignment.FirstNumber(map[string]string{assignment.FirstNumberKey: n.Value}); problem != nil {
			return fmt.Errorf("annotation %s is %q: use a number from 1 to %d, or remove it", assignment.FirstNumberKey, n.Value, receipt.MaxFirst)
		}
	}
	return nil
}

// ofJob reports whether the pods belong to a Job.
func (w *workload) ofJob() bool {
	if kind := value(w.object, "kind"); kind == "Job" || kind == "CronJob" {
		return true
	}
	return slices.ContainsFunc(elements(list(field(w.object, "metadata"), "ownerReferences")), func(r *yaml.Node) bool {
		return value(r, "kind") == "Job" && value(r, "controller") == "true"
	})
}

// variables adds the variables that a container lacks. In a template, each goes before the first variable that refers to it, otherwise to the end, as in
// config/gated. In a pod they come first, as the policy puts them.
func (p *pod) variables(c *yaml.Node, all []*yaml.Node) {
	first := 0
	for _, v := range all {
		name, env := value(v, "name"), list(c, "env")
		if named(env, "name", name) >= 0 {
			continue
		}
		at := first
		if first++; !p.keeps {
			at = slices.IndexFunc(elements(env), func(n *yaml.Node) bool { return strings.Contains(value(n, "value"), "$("+name+")") })
		}
		p.set(c, "env", "name", clone(v), at)
	}
}

// injectAgent adds the sidecar, and the labels with which idalloc-controller plans for the pods.
func (w *workload) injectAgent(o Options) (changed bool, err error) {
	if named(list(field(w.template, "spec"), "schedulingGates"), "name", gate) >= 0 {
		return false, fmt.Errorf("the pod has label %s: %s and the scheduling gate %s, which nothing would remove: remove the gate from the pod template", AssignLabel, ByAgent, gate)
	}
	if changed, err = w.inject(o); err != nil {
		return false, err
	}
	changed = w.mark(Label, yes) || changed
	return w.mark(AssignLabel, ByAgent) || changed, nil
}

// mark adds a missing label to the template, if Options.All or Options.By ask for that. It reports whether it did.
func (w *workload) mark(label, text string) (changed bool) {
	labels := ensure(ensure(w.template, "metadata", yaml.MappingNode), "labels", yaml.MappingNode)
	if value(labels, label) == text {
		return false
	}
	put(labels, label, scalar(text))
	return true
}

// checkAssigned explains why the pods of a template cannot get their ids from the controller, or returns nil.
func checkAssigned(template, spec *yaml.Node) error {
	if value(template, "metadata", "labels", Label) == yes {
		return fmt.Errorf("the pod template asks for the sidecar and for an id of the controller: remove label %s or label %s", Label, AssignLabel)
	}
	if node := value(spec, "nodeName"); node != "" {
		return fmt.Errorf("a pod with nodeName cannot wait behind a scheduling gate: replace nodeName: %s by a nodeSelector for kubernetes.io/hostname", node)
	}
	if value(spec, "terminationGracePeriodSeconds") == "0" {
		return errors.New("terminationGracePeriodSeconds: 0 removes a pod before its program has ended, and the next pod would have the same id: set it to at least 1")
	}
	if at := named(list(spec, "volumes"), "name", idVolume); at >= 0 && field(list(spec, "volumes").Content[at], "downwardAPI") == nil {
		return fmt.Errorf("the pod has a volume %s of its own: rename it, because the volume of the id has this name", idVolume)
	}
	var errs []error
	numbered := value(template, "metadata", "annotations", assignment.FirstNumberKey) != ""
	for _, c := range containers(spec) {
		errs = append(errs, checkAssignedContainer(c, numbered))
	}
	return errors.Join(errs...)
}

func checkAssignedContainer(c *yaml.Node, numbered bool) error {
	name := value(c, "name")
	if runs.Idalloc(value(c, "image"), texts(list(c, "command")), texts(list(c, "args"))) {
		return fmt.Errorf("container %s runs idalloc itself, and two of a pod would act under one id: remove label %s from the pod template, or idalloc from the container", name, AssignLabel)
	}
	if sets(c, idEnv, idField) {
		return fmt.Errorf("container %s sets %s itself: remove it there, because it comes with label %s", name, idEnv, AssignLabel)
	}
	if numbered && sets(c, numberEnv, numberField) {
		return fmt.Errorf("container %s sets %s itself: remove it there, because it comes with annotation %s", name, numberEnv, assignment.FirstNumberKey)
	}
	if at := named(list(c, "volumeMounts"), "mountPath", idDir); at >= 0 && value(list(c, "volumeMounts").Content[at], "name") != idVolume {
		return fmt.Errorf("container %s mounts a volume of its own at %s: mount it elsewhere, because the files of the id are there", name, idDir)
	}
	return nil
}

// sets reports whether the container sets the variable to something else than this field.
func sets(c *yaml.Node, variable, to string) bool {
	env := list(c, "env")
	at := named(env, "name", variable)
	return at >= 0 && value(env.Content[at], "valueFrom", "fieldRef", "fieldPath") != to
}

// containers returns all containers of a pod. Init containers may also need the id, and it is known before the first one starts.
func containers(spec *yaml.Node) []*yaml.Node {
	return append(elements(list(spec, "initContainers")), elements(list(spec, "containers"))...)
}

// clone returns a deep copy, so that no two places of a document share a node.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}
