package world

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	k8sclock "k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Controller is the program idalloc-controller. It runs until its context ends, or until it fails.
type Controller func(ctx context.Context, in Surroundings) error

// Surroundings are what a controller meets.
type Surroundings struct {
	Config *rest.Config
	Clock  k8sclock.Clock
	Log    logr.Logger
	// Elects says that several elect one that acts.
	Elects bool
}

// StartControllers has as many controllers run as the profile says. One that ends is started again.
func (w *World) StartControllers() {
	for i := range w.Profile.Controllers {
		w.startController("idalloc-controller-"+strconv.Itoa(i), 1)
	}
}

func (w *World) startController(name string, run int) {
	d := w.Dice("controller", name, strconv.Itoa(run))
	nodes := slices.DeleteFunc(w.present(), func(n *Node) bool { return n.Cut || n.Down || n.frozen || n.Mute || n.Deaf })
	again := func() {
		if !w.closing {
			w.startController(name, run+1)
		}
	}
	if len(nodes) == 0 {
		w.After(d.Span(time.Second, 5*time.Second), again)
		return
	}
	p := w.newProcess(name, "", nil, run, dice.Pick(d, nodes))
	p.Controls = true
	w.Processes = append(slices.DeleteFunc(w.Processes, func(q *Process) bool { return q.Controls && !q.Runs() }), p)
	w.Witness.Trouble()
	w.Step("start", p.ID, p.Node.Name)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.Launched = cancel, true
	go func() {
		defer close(p.done)
		defer cancel()
		err := w.Controller(ctx, Surroundings{
			Config: &rest.Config{Host: "http://simulation.invalid", QPS: -1, Transport: transport{p: p}}, Clock: p.clock, Log: p.log(), Elects: w.Profile.Elects,
		})
		w.Alone(func() { //nolint:contextcheck // the world does not wait for it
			p.finished(err)
			held := p.held
			p.held = nil
			for _, a := range held { // it is cut off, and no server would answer
				a.broken()
			}
			w.After(d.Tail(5*time.Second), again)
		})
	}()
}

// elects reports whether a write is of the controllers' election.
func (w *World) elects(v *server.Version) bool {
	return w.Serving != nil && w.Serving.Controls && v.Kind.Resource == object.Leases
}

// controllersDown reports whether fewer controllers run than are to.
func (w *World) controllersDown() bool {
	n := w.Profile.Controllers
	for _, p := range w.Running() {
		if p.Controls {
			n--
		}
	}
	return n > 0
}

// IsAssigned reports whether the controller takes for a pod.
func IsAssigned(o object.Object) bool {
	return object.Text(o, object.Metadata, labels, receipt.AssignLabel) == receipt.ByController
}

// IsAgent reports whether the controller plans for a pod whose process takes for itself.
func IsAgent(o object.Object) bool {
	return object.Text(o, object.Metadata, labels, receipt.AssignLabel) == receipt.ByAgent
}

// forbids says what the Role of an agent's account does not permit: it has pods, and Leases, and nothing else.
func (w *World) forbids(r *server.Request) bool {
	if w.Serving == nil || w.Serving.Controls || r.Resource == object.Pods || r.Resource == object.Leases {
		return false
	}
	pod := w.Server.Get(object.Pods, w.Serving.Pod)
	return pod != nil && object.UID(pod.Object) == w.Serving.UID && IsAgent(pod.Object)
}

// SetTemplate makes the template of an owner or a revision another version.
func (w *World) SetTemplate(o object.Object, version int) {
	object.Need(o, "spec", "template")["version"] = int64(version)
	in := object.Need(o, "spec", "template", object.Metadata, labels)
	if delete(in, receipt.AssignLabel); w.Profile.By[version%2] != "" {
		in[receipt.AssignLabel] = w.Profile.By[version%2]
	}
	object.Need(o, "spec", "template", object.Metadata)["annotations"] = object.Object{}
	if first := w.Profile.FirstNumbers[version%2]; first != "" {
		object.Need(o, "spec", "template", object.Metadata, "annotations")[assignment.FirstNumberKey] = first
	}
}

// Gate is the admission policy: a new pod that the controller takes for has the gate.
func Gate(pod object.Object) {
	if IsAssigned(pod) {
		object.Need(pod, "spec")["schedulingGates"] = []any{object.Object{"name": receipt.Gate}}
	}
}

func isGated(pod object.Object) bool {
	gates, _ := object.At(pod, "spec")["schedulingGates"].([]any)
	return len(gates) > 0
}

// IsGated reports whether a pod waits behind a gate.
func IsGated(pod *server.Version) bool { return isGated(pod.Object) }

// lets is a budget: one pod less than the count, at least, stays ready.
func (w *World) lets(pod *server.Version) bool {
	owner := w.Owner()
	if owner == nil {
		return true
	}
	ready := 0
	for _, v := range w.Server.Objects(object.Pods) {
		if isReady(v) && InWorkload(v.Object) && !object.Terminating(v.Object) {
			ready++
		}
	}
	if isReady(pod) {
		ready--
	}
	return ready >= owner.Count()-1
}

// isToldAgain reports whether what the pod's program reads changed since the kubelet heard of the pod last.
func (k *kubeletPod) isToldAgain(o object.Object) bool {
	return IsAssigned(o) && !object.Terminating(o) && object.Annotation(o, receipt.IdentityKey) != object.Annotation(k.known, receipt.IdentityKey)
}

// read brings what the kubelet gives the program of an assigned pod up to date: the environment before it starts, the files always.
func (p *Process) read(pod object.Object) {
	if !p.Assigned {
		return
	}
	file := &identity.Identity{}
	if file.UnmarshalJSON([]byte(object.Annotation(pod, receipt.IdentityKey))) != nil {
		file = nil
	}
	if p.File = file; !p.Launched {
		p.Environment = p.environment(pod)
		return
	}
	if p.working != nil && file != nil && *file != *p.working {
		p.w.Step("heard", p.ID, strconv.Itoa(file.ID), strconv.Itoa(file.Count), strconv.FormatInt(file.Token, 10))
		next := *file
		next.ID, next.Number = p.Environment.ID, p.Environment.Number
		p.working = &next
		p.w.Witness.Look()
	}
}

// environment is the identity with which a container starts: its id and its number are those of the variables. It is nil if that is empty.
func (p *Process) environment(pod object.Object) *identity.Identity {
	id, err := strconv.Atoi(object.Annotation(pod, receipt.IDKey))
	if err != nil || p.File == nil {
		return nil
	}
	out := *p.File
	out.ID = id
	out.Number, _ = strconv.Atoi(object.Annotation(pod, receipt.NumberKey))
	return &out
}

// runAssigned is a program that knows nothing of idalloc but the variable and the files.
func (p *Process) runAssigned(ctx context.Context) error {
	if p.Environment == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.work(ctx, *p.Environment)
}
