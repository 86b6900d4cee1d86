package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
)

// work is the function of Run: it acts until its context ends, and then needs a while to stop.
func (p *Process) work(ctx context.Context, id identity.Identity) error {
	p.w.Alone(func() {
		if p.Dead {
			return
		}
		p.acting, p.slept = ctx, false
		p.begin(id) //nolint:contextcheck // the world may start another process after it
	})
	if p.untilBroken(ctx, id) {
		return errBroken
	}
	<-ctx.Done()
	p.stopping()
	p.w.Alone(func() { p.stop() }) //nolint:contextcheck // the world may start another process after it
	return ctx.Err()
}

// stopping blocks for as long as the work needs to stop. A process that was suspended finds its step too old.
func (p *Process) stopping() {
	var long time.Duration
	p.w.Alone(func() {
		if p.Dead || p.working == nil {
			return
		}
		d := p.w.Dice("stop", p.ID, strconv.FormatInt(p.working.Token, 10), strconv.Itoa(p.working.Count))
		long = min(d.Tail(p.w.Profile.Stop), 9*time.Second)
		if p.w.Profile.SlowStop {
			long = d.Span(9*time.Second, 9700*time.Millisecond) // its clock may be fast
		}
	})
	if long == 0 {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	<-timer.C
	p.Thawed()
}

func (p *Process) begin(id identity.Identity) {
	p.working = &id
	p.w.tell(aWorkBegan, p)
	p.w.Step("begin", p.ID, strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Token, 10))
	p.w.Witness.Look()
	p.w.kubeletSees(p.Pod, p.UID)
}

func (p *Process) stop() {
	if p.working == nil {
		return
	}
	p.w.Step("stop", p.ID, strconv.Itoa(p.working.ID))
	p.working, p.parts = nil, nil
	p.w.kubeletSees(p.Pod, p.UID)
}

// runStart is a program with a loop of its own: it asks Current before every step.
func (p *Process) runStart(ctx context.Context, o idalloc.Options) error {
	if p.w.Profile.HandsOver {
		o.Stop = p.stopped
	}
	instance, err := idalloc.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was told to end
		}
		return err
	}
	p.w.Alone(func() { p.instance = instance })
	heard := make(chan struct{})
	go func() { //nolint:contextcheck // the world may start another process after it
		defer close(heard)
		for id := range instance.Changes() {
			p.w.Alone(func() { p.heard(id) })
		}
	}()
	for ctx.Err() == nil && instance.Healthy() == nil {
		pause(ctx.Done(), 5*time.Second)
	}
	p.Thawed()
	failed := instance.Healthy()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	p.w.Alone(func() {
		p.instance = nil
		if !p.asked {
			p.working = nil // work that could not be stopped before ends with its program
		}
	})
	if err := instance.Close(release); err != nil && failed == nil && ctx.Err() == nil {
		failed = err
	}
	closeFully(context.WithoutCancel(ctx), instance, heard)
	if ctx.Err() != nil {
		return nil
	}
	return failed
}

// closeFully closes an instance again whose Close took too long, until nothing of it is left.
func closeFully(ctx context.Context, instance *idalloc.Instance, heard <-chan struct{}) {
	for pause(heard, time.Millisecond) {
		again, cancel := context.WithTimeout(ctx, time.Minute)
		_ = instance.Close(again) // it is asked again
		cancel()
	}
}

func (p *Process) heard(id identity.Identity) {
	if p.Dead {
		return
	}
	p.publishes(id)
	if id.Assigned() {
		p.last, p.slept = &id, false
		p.w.tell(aWorkBegan, p)
	}
	if id.State != identity.StateDraining && !p.asked {
		p.working = nil // work that could not be stopped follows this now; work that is stopping acts until it has
	}
	p.w.Step("heard", p.ID, string(id.State), strconv.Itoa(id.ID), strconv.Itoa(id.Count), strconv.FormatInt(id.Token, 10))
	p.w.Witness.Look()
	p.w.kubeletSees(p.Pod, p.UID)
	if after, _, broken := p.breaks(id); broken && id.Assigned() {
		p.w.After(after, func() { p.w.Kill(p) })
	}
}

// stopped is the Stop callback: the work acts a little longer.
func (p *Process) stopped(ctx context.Context, _ idalloc.Stopping) error {
	p.w.Alone(func() {
		p.asked = true
		if !p.Dead && p.instance != nil {
			p.working = p.last
		}
	})
	pause(ctx.Done(), p.w.Profile.Stop)
	p.Thawed()
	var err error
	p.w.Alone(func() {
		p.stops++
		p.asked = false
		if ctx.Err() == nil && p.instance != nil && p.stops%3 != 0 && p.w.Dice("reluctant", p.ID, strconv.Itoa(p.stops)).Chance(p.w.Profile.Reluctant) {
			err = errReluctant // it acts on until it is asked again, or hears something else, and at the third time it stops
			return
		}
		p.working, err = nil, ctx.Err()
	})
	return err
}

// errReluctant is what work says that cannot be stopped at the moment.
var errReluctant = errors.New("the work cannot be stopped at the moment")

// pause blocks for a while, or until done is closed. It returns true when the time is over.
func pause(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}
