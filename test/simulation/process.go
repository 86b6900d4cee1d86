package simulation

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator"
	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/clock"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// process is one run of a pod's container: the production code, and the work under its id.
type process struct {
	w     *world
	id    string // for the history: pod name and number of the run
	pod   string
	uid   string
	node  *node
	clock *clock.Clock

	dead   bool // killed: what it sends does not arrive, what it believes does not count
	ended  bool // its goroutines are done
	frozen bool
	cut    bool          // it is cut off from the API server, its node is not
	heldUp bool          // its last request was held up
	news   time.Duration // when the last event that is on its way to it is due
	thaw   chan struct{} // closed when it goes on
	asleep []func()      // what happens when it goes on
	held   []arrival     // what arrives when it can be reached
	calls  int
	perKey map[string]int

	cancel   context.CancelFunc
	instance *idcontext.Instance  // with Start
	alloc    *allocator.Allocator // as a command
	beside   *beside              // what it tells its ids as a command
	working  *identity.Identity   // what the work acts under, nil if it does not
	acting   context.Context      //nolint:containedctx // the work's, with Run
	slept    bool                 // it was suspended since the work began
	last     *identity.Identity   // the last that Start told
	launched bool
	failure  error
	done     chan struct{}
	// fenceAfter is that of this program's revision, zero without strict mode.
	fenceAfter time.Duration
	stops      int  // how often its work was asked to stop
	asked      bool // it is being asked
}

func (w *world) newProcess(pod, uid string, run int, on *node) *process {
	p := &process{
		w: w, id: pod + "#" + strconv.Itoa(run), pod: pod, uid: uid, node: on, perKey: map[string]int{}, done: make(chan struct{}),
	}
	p.clock = &clock.Clock{Process: p, Start: w.start, Offset: on.offset, Rate: on.rate}
	p.fenceAfter = w.profile.FenceAfter
	if v := w.server.Get(object.Pods, pod); v != nil {
		p.fenceAfter = w.profile.Fence(object.Number(v.Object, "spec", "version"))
	}
	return p
}

// callDice returns the dice of one request. They depend on what it asks for, and on how often that was asked before.
func (p *process) callDice(r *server.Request) *dice.Dice {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	key := r.Key()
	p.perKey[key]++
	return p.w.dice("call", p.id, p.uid, key, strconv.Itoa(p.perKey[key]))
}

// arrival is what does not reach a process yet, and what it hears instead if the connection breaks meanwhile.
type arrival struct{ do, broken func() }

// hold keeps what arrives for later if the process cannot be reached.
func (p *process) hold(do, broken func()) bool {
	switch {
	case p.dead:
		return true
	case p.frozen || p.isCut():
		p.held = append(p.held, arrival{do, broken})
		return true
	}
	return false
}

// String implements client.
func (p *process) String() string { return p.id }

// IsDead implements client.
func (p *process) IsDead() bool { return p.dead }

// Deliver implements client: what arrives while the process cannot be reached waits until it can.
func (p *process) Deliver(due time.Duration, do, broken func()) {
	p.news = max(p.news, due)
	p.w.After(due-p.w.Now(), func() {
		if !p.hold(do, broken) {
			do()
		}
	})
}

func (p *process) isCut() bool { return p.cut || p.node.cut }

// WhenAwake runs do now, or when the process goes on.
func (p *process) WhenAwake(do func()) {
	if p.frozen {
		p.asleep = append(p.asleep, do)
		return
	}
	do()
}

// Alone implements clock.Process.
func (p *process) Alone(do func()) { p.w.Alone(do) }

// Thawed implements client: it blocks while the process is suspended.
func (p *process) Thawed() {
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

func (p *process) freeze() {
	if p.frozen || p.dead || p.ended {
		return
	}
	p.frozen, p.slept, p.thaw = true, true, make(chan struct{})
	p.w.note("suspend", p.id)
}

func (p *process) goOn() {
	if !p.frozen {
		return
	}
	p.frozen = false
	close(p.thaw)
	p.w.note("resume", p.id)
	asleep := p.asleep
	p.asleep = nil
	for _, do := range asleep {
		do()
	}
	p.reach()
}

// reach delivers what arrived while the process could not be reached.
func (p *process) reach() {
	if p.frozen || p.isCut() {
		return
	}
	held := p.held
	p.held = nil
	if p.dead {
		return
	}
	for _, a := range held {
		a.do()
	}
}

// kill ends the process between any two of its steps. Requests that are under way may still arrive.
func (p *process) kill() {
	if p.dead || p.ended {
		return
	}
	p.w.note("kill", p.id)
	p.dead = true
	p.working = nil
	if p.beside != nil && p.fenceAfter > 0 {
		p.beside.set(nil)
	}
	p.goOn()
	p.cancel()
}

// terminate is SIGTERM.
func (p *process) terminate() {
	p.w.note("terminate", p.id)
	p.WhenAwake(p.cancel)
}

// belief is what the process acts under at this moment, nil if it does not act. A suspended process does not act;
// without strict mode its id is its own all the same.
func (p *process) belief() *identity.Identity {
	strict := p.fenceAfter > 0
	if p.beside != nil {
		return p.besideBelief()
	}
	if p.dead || p.ended || (strict && p.frozen) {
		return nil
	}
	if strict && p.slept && p.acting != nil && p.acting.Err() != nil {
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

// launch starts the production code.
func (p *process) launch() {
	ctx, cancel := context.WithCancel(p.w.ctx)
	p.cancel, p.launched = cancel, true
	o := idcontext.Options{
		PodName: p.pod, PodUID: p.uid, PodNamespace: server.Namespace, FenceAfter: p.fenceAfter, Clock: p.clock, Log: p.log(), KeepOnCountChange: p.w.profile.Keeps,
		Config: &rest.Config{Host: "http://simulation.invalid", QPS: -1, Transport: transport{p: p}},
	}
	go func() {
		defer close(p.done)
		defer cancel()
		var err error
		switch {
		case p.beside != nil:
			err = p.runCommand(ctx, o)
		case p.w.profile.Start:
			err = p.runStart(ctx, o)
		default:
			err = idcontext.Run(ctx, o, p.work)
		}
		p.w.Alone(func() { p.finished(err) }) //nolint:contextcheck // the world may start another process after it
	}()
}

func (p *process) log() logr.Logger {
	if p.w.trace == nil {
		return logr.FromSlogHandler(slog.DiscardHandler) // the zero value is slog's default
	}
	return funcr.New(func(_, line string) {
		p.w.Alone(func() {
			if !p.dead {
				p.w.log(p, line)
			}
		})
	}, funcr.Options{Verbosity: 1})
}

func (p *process) finished(err error) {
	p.ended = true
	p.goOn() // it may have been suspended at this moment
	p.working = nil
	p.failure = err
	if p.beside != nil && p.fenceAfter > 0 {
		p.beside.set(nil)
	}
	if p.dead {
		return
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	p.w.Step("exit", p.id, why)
	p.w.kubeletSees(p.pod, p.uid)
}

// waitForEnd blocks until the process has ended. One that does not has left a goroutine behind.
func (p *process) waitForEnd() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		panic("simulation: a goroutine was left behind: " + p.id + " does not end")
	}
}
