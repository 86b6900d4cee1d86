package world

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/clock"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Process is one run of a pod's container: the production code, and the work under its id.
type Process struct {
	ID   string // for the history: pod name and number of the run
	Pod  string
	UID  string
	Node *Node
	// FenceAfter is that of this program's revision, zero without strict mode.
	FenceAfter time.Duration
	Launched   bool
	Dead       bool // killed: what it sends does not arrive, what it believes does not count
	Ended      bool // its goroutines are done
	Cut        bool // it is cut off from the API server, its node is not
	Calls      int  // how many requests it has made
	Proposals  int  // how many of them were writes of the owner
	// Shown is what it published last, and TermAt when it was told to end, 0 before.
	Shown  identity.Identity
	TermAt time.Duration
	// Controls says that it is a controller, and Assigned that the controller takes for its pod: it has the id of its Environment, and what its File says.
	Controls, Assigned bool
	Environment, File  *identity.Identity

	accepted time.Duration // until when the server accepts its token without a look

	w      *World
	clock  *clock.Clock
	perKey map[string]int // requests, by what they ask for
	cancel context.CancelFunc
	done   chan struct{}

	frozen bool
	thaw   chan struct{} // closed when it is resumed
	asleep []func()      // what happens when it is resumed
	held   []arrival     // what arrives when it can be reached
	news   time.Duration // when the last event that is on its way to it is due
	heldUp bool          // its last request was held up

	instance *idalloc.Instance    // with Start
	alloc    *allocator.Allocator // as a command, or with partitions
	beside   *beside              // what it tells its ids as a command
	working  *identity.Identity   // what the work acts under, nil if it does not
	divides  bool                 // it works on partitions
	stubborn bool                 // it does not know when work on some of them has stopped
	pauses   chan bool            // whether it is to pause its work on partitions
	broken   chan struct{}        // closed when its program ends by itself, with partitions
	leaving  bool                 // it was told to end, with partitions
	fencing  bool                 // it was fenced, and the work has not stopped yet
	waits    *identity.Identity   // what the work is to act under when it has stopped
	parts    map[int]int64        // the partitions that the work works on, and their tokens
	acting   context.Context      //nolint:containedctx // the work's, with Run
	slept    bool                 // it was suspended since the work began
	warm     time.Duration        // when its pod may be ready, 0 before it acted
	last     *identity.Identity   // the last that Start told
	stops    int                  // how often its work was asked to stop
	asked    bool                 // it is being asked
}

// newProcess makes a process of a pod as its kubelet knows it, nil if the process has no pod.
func (w *World) newProcess(pod, uid string, known object.Object, run int, on *Node) *Process {
	p := &Process{
		w: w, ID: pod + "#" + strconv.Itoa(run), Pod: pod, UID: uid, Node: on, perKey: map[string]int{}, done: make(chan struct{}),
	}
	p.clock = &clock.Clock{Process: p, Start: w.start, Offset: on.offset, Rate: on.rate}
	template := 1
	p.FenceAfter = w.Profile.FenceAfter
	if known != nil {
		template = madeFrom(known)
		p.FenceAfter = w.Profile.Fence(template)
	}
	p.divides = w.Profile.Divides(template)
	p.stubborn = w.Dice("stubborn", pod).Chance(w.Profile.Stubborn)
	if run > 1 && w.Profile.Loosens && w.Dice("loosens", p.ID, uid).Chance(0.5) {
		p.FenceAfter = 0
	}
	return p
}

// callDice returns the dice of one request. They depend on what it asks for, and on how often that was asked before.
func (p *Process) callDice(r *server.Request) *dice.Dice {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	key := r.Key()
	p.perKey[key]++
	return p.w.Dice("call", p.ID, p.UID, key, strconv.Itoa(p.perKey[key]))
}

// arrival is what does not reach a process yet, and what it hears instead if the connection breaks meanwhile.
type arrival struct{ do, broken func() }

// hold keeps what arrives for later if the process cannot be reached.
func (p *Process) hold(do, broken func()) bool {
	switch {
	case p.Dead || p.Controls && p.Ended:
		if p.Controls {
			broken() // client-go sends Events without a context that ends
		}
		return true
	case p.frozen || p.isCut():
		p.held = append(p.held, arrival{do, broken})
		return true
	}
	return false
}

// Runs reports whether the process has neither ended nor been killed. It may be suspended.
func (p *Process) Runs() bool { return !p.Ended && !p.Dead }

// String implements server.Client.
func (p *Process) String() string { return p.ID }

// IsDead implements server.Client.
func (p *Process) IsDead() bool { return p.Dead }

// Deliver implements server.Client: what arrives while the process cannot be reached waits until it can.
func (p *Process) Deliver(due time.Duration, do, broken func()) {
	p.news = max(p.news, due)
	p.w.After(due-p.w.Now(), func() {
		if !p.hold(do, broken) {
			do()
		}
	})
}

func (p *Process) isCut() bool { return p.Cut || p.Node.Cut }

// WhenAwake runs do now, or when the process is resumed.
func (p *Process) WhenAwake(do func()) {
	if p.frozen {
		p.asleep = append(p.asleep, do)
		return
	}
	do()
}

// Alone implements clock.Process.
func (p *Process) Alone(do func()) { p.w.Alone(do) }

// Thawed implements server.Client: it blocks while the process is suspended.
func (p *Process) Thawed() {
	for {
		p.w.mu.Lock()
		frozen, thaw := p.frozen, p.thaw
		p.w.mu.Unlock()
		if !frozen {
			return
		}
		<-thaw
	}
}

// Freeze suspends the process until GoOn.
func (p *Process) Freeze() {
	if p.frozen || !p.Runs() {
		return
	}
	p.frozen, p.slept, p.thaw = true, true, make(chan struct{})
	p.w.Note("suspend", p.ID)
}

// GoOn ends a suspension.
func (p *Process) GoOn() {
	if !p.frozen {
		return
	}
	p.frozen = false
	close(p.thaw)
	p.w.Note("resume", p.ID)
	asleep := p.asleep
	p.asleep = nil
	for _, do := range asleep {
		do()
	}
	p.reach()
}

// reach delivers what arrived while the process could not be reached.
func (p *Process) reach() {
	if p.frozen || p.isCut() {
		return
	}
	held := p.held
	p.held = nil
	for _, a := range held {
		switch {
		case !p.Dead:
			a.do()
		case p.Controls:
			a.broken()
		}
	}
}

// kill ends the process between any two of its steps. Requests that are under way may still arrive.
func (p *Process) kill() {
	if !p.Runs() {
		return
	}
	p.w.Note("kill", p.ID)
	p.Dead = true
	p.working = nil
	if p.beside != nil && p.FenceAfter > 0 {
		p.beside.set(nil)
	}
	p.GoOn()
	p.cancel()
}

// terminate is SIGTERM.
func (p *Process) terminate() {
	p.w.Note("terminate", p.ID)
	p.TermAt = p.w.Now()
	p.WhenAwake(func() { p.cancel() }) // it may begin to run until then, and cancel changes
}

// publishes takes in what the process publishes.
func (p *Process) publishes(id identity.Identity) {
	p.Shown = id
	p.w.Witness.Told(p, id)
}

// Belief is what the process acts under at this moment, nil if it does not act. A suspended process does not act;
// without strict mode its id is its own all the same.
func (p *Process) Belief() *identity.Identity {
	strict := p.FenceAfter > 0
	if p.beside != nil {
		return p.besideBelief()
	}
	if !p.Runs() || (strict && p.frozen) {
		return nil
	}
	if strict && p.slept && p.ended() {
		return nil // the work looks at its context before its next step
	}
	if p.working != nil {
		return p.working
	}
	if p.instance != nil {
		if now := p.instance.Current(); now.Assigned() {
			return &now
		}
	}
	return nil
}

// ended reports whether the time of the work is over in strict mode.
func (p *Process) ended() bool {
	return p.acting != nil && p.acting.Err() != nil || p.alloc != nil && (p.fencing || p.alloc.Fenced()) ||
		p.instance != nil && p.instance.Current().State == identity.StateFenced
}

// launch starts the production code.
func (p *Process) launch() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.Launched = cancel, true
	if p.divides {
		p.pauses = make(chan bool, 1)
	}
	paused := p.w.paused[p.Pod]
	go func() {
		defer close(p.done)
		defer cancel()
		err := p.run(ctx, paused)
		p.w.Alone(func() { p.finished(err) }) //nolint:contextcheck // the world may start another process after it
	}()
}

func (p *Process) run(ctx context.Context, paused bool) error {
	if p.Assigned {
		return p.runAssigned(ctx)
	}
	config := &rest.Config{Host: "http://simulation.invalid", QPS: -1, Transport: transport{p: p}}
	if p.beside != nil || p.divides {
		st, err := store.New(config, p.clock)
		if err != nil {
			return err
		}
		o := allocator.Options{
			Store: st, Pod: p.Pod, PodUID: types.UID(p.UID), Namespace: server.Namespace, Log: p.log(), Divides: p.divides, Pause: p.pauses, Paused: paused,
			FenceAfter: p.FenceAfter,
		}
		if p.beside != nil {
			return p.runCommand(ctx, o)
		}
		return p.runMember(ctx, o)
	}
	o := idalloc.Options{
		PodName: p.Pod, PodUID: p.UID, PodNamespace: server.Namespace, FenceAfter: p.FenceAfter, Clock: p.clock, Log: p.log(),
		KeepOnCountChange: p.w.Profile.Keeps, Config: config,
	}
	if p.w.Profile.Start {
		return p.runStart(ctx, o)
	}
	return idalloc.Run(ctx, o, p.work)
}

func (p *Process) log() logr.Logger {
	if p.w.Trace == nil {
		return logr.FromSlogHandler(slog.DiscardHandler) // the zero value is slog's default
	}
	return funcr.New(func(_, line string) {
		p.w.Alone(func() {
			if !p.Dead {
				p.w.log(p.ID, line)
			}
		})
	}, funcr.Options{Verbosity: 1})
}

func (p *Process) finished(err error) {
	p.Ended = true
	p.GoOn() // it may have been suspended at this moment
	p.working = nil
	if p.Dead {
		return // its work ended when it was killed, and the next process of the pod may have begun
	}
	if p.beside != nil && p.FenceAfter > 0 {
		p.beside.set(nil)
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	p.w.Step("exit", p.ID, why)
	p.w.kubeletSees(p.Pod, p.UID)
}

// waitForEnd blocks until the process has ended. One that does not has left a goroutine behind.
func (p *Process) waitForEnd() {
	if pause(p.done, time.Hour) {
		panic("simulation: a goroutine was left behind: " + p.ID + " does not end")
	}
}

// Puppet returns a process of a new pod that runs no production code: it acts as it is told. It is for tests of those who look at
// a world.
func (w *World) Puppet(name string) *Process {
	v := w.Server.Put(object.KindOf(object.Pods), object.Object{
		object.Metadata: object.Object{"name": name, labels: object.Object{AppLabel: OwnerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Running"},
	}, server.Writer{Manager: kubelet})
	p := w.newProcess(name, object.UID(v.Object), v.Object, 1, w.Nodes[0])
	p.Launched = true
	k := w.pods[PodKey(p.Pod, p.UID)]
	k.process, k.runs = p, 1
	w.Processes = append(w.Processes, p)
	return p
}

// Act has a puppet act under an identity, nil for none.
func (p *Process) Act(id *identity.Identity) { p.working = id }
