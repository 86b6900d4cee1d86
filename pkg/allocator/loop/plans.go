package loop

import (
	"context"
	"errors"
	"maps"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

const (
	// mostContenders is more than the pods for which an owner has room. A count says more when somebody mistypes it.
	mostContenders = 1 << 15
	// lasting is how long a write has to stand for others not to have undone it, and minDamping and maxDamping bound how much later the next
	// one comes each time that they did.
	lasting    = time.Minute
	minDamping = 100 * time.Millisecond
	maxDamping = 30 * time.Second
	// minStandBack and maxStandBack bound how long a process whose program failed waits before it has another pod's work stopped again. The
	// time doubles with each failure.
	minStandBack = 30 * time.Second
	maxStandBack = 10 * time.Minute
	// lookTime is how often one of the holders plans in vain about partitions.
	lookTime = 30 * time.Second
)

// plans is what a process knows about its turn to plan, and about what the last plan came to.
type plans struct {
	// began is when this process sent its first request, and claiming when the claim under way began.
	began, claiming time.Time
	// owned and labelled follow the pods that could free a slot: the owner's, and those with a lock, which somebody may have relabelled.
	owned, labelled *watch.PodStream
	stop            context.CancelFunc
	// made says that a plan was made since this pod has no slot. planned is the owner that it was about, with what was heard since, and outcome
	// what it came to.
	made    bool
	planned store.Owner
	outcome proposal.Decision
	// rollout is where this pod stood in a rolling update at that plan.
	rollout proposal.Rollout
	// contenders is an estimate of how many pods want to plan now.
	contenders int
	// unsureAt is when the watches have been silent for so long that they are not relied on.
	unsureAt time.Time
	// reservedSince is when this waiter first saw a free slot that it must leave to others.
	reservedSince time.Time
	// wroteAt is when this pod last wrote its entry, and undone how often that was undone within lasting.
	wroteAt time.Time
	undone  int
	// vainUntil is until when a plan about partitions is not made again.
	vainUntil time.Time
	// lacksSince is since when this holder has lacked partitions that are to be its own.
	lacksSince time.Time
	// extended says that the turn was put off because the API server was slow.
	extended bool
	vacant   vacancies
	// drops says that a plan is to drop a request for this pod's slot.
	drops bool
}

func (p *plans) close() {
	if p.stop != nil {
		p.stop()
		<-p.owned.Done()
		<-p.labelled.Done()
		p.owned, p.labelled, p.stop = nil, nil, nil
	}
}

// gave forgets what is about the slot that was given up or never taken.
func (p *plans) gave() { p.made, p.reservedSince = false, time.Time{} }

// follow follows the pods.
func (p *plans) follow(a *Allocator) {
	if p.owned != nil {
		return
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(a.contact.streams)
	p.owned = watch.Selected(ctx, a.o.Store, a.ref.Namespace, a.view.owner.Selector, a.log)
	p.labelled = watch.Selected(ctx, a.o.Store, a.ref.Namespace, assignment.HoldersSelector(a.ref.String()), a.log)
	p.owned.Wake(a.contact.wake)
	p.labelled.Wake(a.contact.wake)
	p.unsureAt = a.clock.Now().Add(a.pace.ReadAgain())
}

func (p *plans) synced() bool { return p.owned != nil && p.owned.Synced() && p.labelled.Synced() }

// heard takes in a newer moment of the owner.
func (p *plans) heard(a *Allocator, before store.Owner) {
	now := a.view.owner
	p.vacant.see(now, a.clock.Now())
	if n := contenders(now); n > p.contenders || !p.made && p.contenders == 0 {
		p.contenders = n
	}
	if !a.named(before) && a.named(now) && a.contact.owner != nil && !p.made && a.tenure.Lock.State != receipt.Locks {
		a.known.Again = later(a.known.Again, a.clock.Now().Add(a.pace.Queue(p.contenders))) // all hear of it at the same moment
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (a *Allocator) named(owner store.Owner) bool {
	_, named := owner.Record.State.Slots.Of(a.o.Pod)
	return named
}

// contenders estimates how many pods want to plan: as many as there are slots to give, or as many as a Deployment is starting.
func contenders(owner store.Owner) int {
	return min(max(1, owner.Count-len(owner.Record.State.Slots), starting(owner)), mostContenders)
}

// starting estimates how many pods of a Deployment start now. Its status lags: while there are old pods in a rolling update the controller
// may just have started as many as it may.
func starting(owner store.Owner) int {
	if !owner.Rolls() {
		return 0
	}
	r := owner.Rollout
	if r.Progress.Updated < r.Progress.Replicas && !r.Recreate {
		return r.MaxSurge + r.MaxUnavailable
	}
	return max(r.Progress.Replicas, owner.Count) - r.Progress.Available
}

// surplus reports whether more pods of a Deployment live than there are slots.
func surplus(owner store.Owner) bool {
	return owner.Rolls() && owner.Rollout.Progress.Replicas > owner.Count
}

// reconsider answers whether a plan would change something, as far as this process knows, and draws its turn when that has become so.
func (a *Allocator) reconsider() {
	p, before := &a.plans, a.known.Worth
	switch {
	case !a.view.ok || a.tenure.Stopping:
		a.known.Worth = false
	case a.tenure.Lock.State == receipt.Locks:
		a.known.Outcome = false
		a.known.Worth = a.holderPlans()
	case a.known.Ends:
		a.known.Worth = a.tenure.Lock.State == receipt.GaveUp && a.named(a.view.owner)
	default:
		a.known.Worth = a.waiterPlans()
		a.known.Outcome = a.known.Outcome || surplus(a.view.owner) // it shows life before its turn, so that one plan serves all that run
	}
	if a.known.Worth && !before {
		p.extended = false
		a.known.Turn = a.clock.Now().Add(a.turn(a.pace.Scale(a.view.owner.Count)))
	}
}

// turn draws how long this process lets others plan first.
func (a *Allocator) turn(scale time.Duration) time.Duration {
	p, owner := &a.plans, a.view.owner
	switch a.tenure.Lock.State {
	case receipt.Locks:
		damped := time.Duration(0)
		if p.undone > 0 {
			damped = min(minDamping<<min(p.undone-1, 16), maxDamping)
		}
		return damped + a.pace.Window(max(owner.Count, 2), max(a.pace.Calm(), damped/4)) + a.joinIn()
	case receipt.GaveUp:
		givers := len(owner.Record.State.Handover)
		if givers == 0 {
			givers = owner.Count
		}
		return a.pace.Window(givers, min(scale, time.Second))
	case receipt.None, receipt.Waits, receipt.Unreadable:
	}
	return a.pace.Window(p.contenders, scale)
}

// holderPlans is for a pod with a slot: it plans if the map does not say so, or if partitions are to move.
func (a *Allocator) holderPlans() bool {
	owner, id := a.view.owner, a.tenure.Lock.Share.ID
	if a.tenure.Working.Empty() || id >= owner.Count {
		return false
	}
	if owner.Record.State.Slots[id] != a.o.Pod || a.plans.drops {
		return true
	}
	return a.partitionsDue()
}

// waiterPlans is for a pod without a slot.
func (a *Allocator) waiterPlans() bool {
	p, owner := &a.plans, a.view.owner
	id, named := owner.Record.State.Slots.Of(a.o.Pod)
	switch {
	case named && id < owner.Count:
		return a.tenure.Lock.State == receipt.GaveUp // others go first; a waiter takes it
	case a.tenure.Lock.State == receipt.GaveUp:
		return false // it waits again first
	case !p.made || owner.UID != p.planned.UID || owner.Count != p.planned.Count:
		return true
	case !a.clock.Now().Before(p.unsureAt) && !p.unsureAt.IsZero():
		return true
	case !p.synced():
		return !a.unmoved(owner)
	}
	if a.rolledOn(owner, p.outcome) {
		return true
	}
	d := proposal.Plan(a.input(owner, a.guess(owner), p.rollout))
	if d.Next != nil || (d.Reserved > 0) == p.reservedSince.IsZero() || a.rolledOn(owner, d) {
		return true
	}
	p.outcome, p.planned.Record, p.planned.Annotations = d, owner.Record, owner.Annotations
	return false
}

// unmoved reports whether nothing of the owner has changed that matters to a waiter.
func (a *Allocator) unmoved(owner store.Owner) bool {
	now, then := owner.Record.State, a.plans.planned.Record.State
	return maps.Equal(now.Slots, then.Slots) && maps.Equal(now.Handover, then.Handover)
}

// rolledOn reports whether the rolling update went on since the last plan in a way that matters to a waiter with decision d. How many pods are
// available matters only if the limit of hand-overs kept the waiter from asking for a slot.
func (a *Allocator) rolledOn(owner store.Owner, d proposal.Decision) bool {
	rollout := owner.Rollout
	if !d.HandOver.Full() {
		rollout.Progress = a.plans.planned.Rollout.Progress
	}
	return rollout != a.plans.planned.Rollout
}

// alarms are when time alone changes what a process knows.
func (a *Allocator) alarms() []time.Time {
	p := &a.plans
	out := []time.Time{a.work.listenAt, a.strict.alarm()}
	if a.tenure.Lock.State == receipt.Locks {
		return append(out, p.vainUntil, a.vacantAt(), a.joinsAt(), a.idleAt())
	}
	if p.made {
		out = append(out, p.unsureAt)
	}
	if !p.reservedSince.IsZero() {
		out = append(out, p.reservedSince.Add(a.pace.Longer(proposal.Reserved(a.receipt().Rank))))
	}
	if failures := a.receipt().Failures(); failures > 0 {
		out = append(out, p.began.Add(a.standBackFor(failures)))
	}
	return out
}

func (a *Allocator) standBackFor(failures int) time.Duration {
	return a.pace.Longer(min(minStandBack<<min(failures-1, 8), maxStandBack))
}

// plan reads the owner unless a stream has it, lists the pods, decides, and writes what is proposed.
func (a *Allocator) plan(ctx context.Context) error {
	p := &a.plans
	if slow := a.pace.Loaded(); !p.extended && p.contenders > 1 && slow > a.pace.Scale(a.view.owner.Count) {
		p.extended = true // too many would plan before the first one's write is heard of
		a.known.Turn = a.clock.Now().Add(a.turn(slow))
		return nil
	}
	p.drops = false
	if !a.view.fresh && (a.contact.owner == nil || !a.contact.owner.Synced() || a.contact.stale) {
		if err := a.look(ctx); err != nil || a.view.gone {
			return err
		}
	}
	owner := a.view.owner
	began := a.clock.Now()
	decision, err := a.decide(ctx, owner)
	a.happened.Tell(event.Planned{Took: a.clock.Since(began), Err: err})
	if err != nil {
		return err
	}
	if decision.Next == nil {
		a.inVain(owner, decision)
		return nil
	}
	if decision.HandOver.AskedFor(a.o.Pod) && a.tenure.Lock.State == receipt.None {
		if err := a.write(ctx, waiting()); err != nil { // so that it counts as a hand-over under way when it has the slot
			return err
		}
	}
	written, err := a.o.Store.Propose(ctx, owner, *decision.Next)
	a.pace.Planned(a.clock.Since(began))
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrAmbiguous):
		p.contenders = min(max(2*p.contenders, 2), mostContenders)
		a.known.Unseen = true
		return err
	case errors.Is(err, store.ErrNotKept):
		a.wait.set("the API server to keep what idalloc writes: " + err.Error())
		a.log.Error(err, "what was proposed did not last; the next plan comes later")
		a.adopt(written)
		p.undone++
		a.later(min(minDamping<<min(p.undone, 16), maxDamping))
		return nil
	case err != nil:
		return err
	}
	a.retry.Reset()
	p.made, p.planned, p.outcome = true, written, decision
	a.adopt(written)
	a.noteWrite(owner, decision)
	a.known.Worth, p.contenders = false, 1
	return nil
}

// noteWrite tells of a write, and notes whether the one before was undone.
func (a *Allocator) noteWrite(before store.Owner, d proposal.Decision) {
	p, now := &a.plans, a.clock.Now()
	if a.tenure.Lock.State == receipt.Locks {
		if p.undone++; now.Sub(p.wroteAt) >= lasting {
			p.undone = 0
		}
		p.wroteAt = now
	}
	a.happened.Tell(event.Written{Filled: changes(d.Filled), Freed: changes(d.Freed), Asked: changes(d.HandOver.Asked), WasClean: true})
	a.tellPartitions(before, d)
}

// decide lists the pods and plans for what it finds. If a Deployment has no slot for this pod, or a hand-over is under way, it reads where the
// pod stands in the rolling update.
func (a *Allocator) decide(ctx context.Context, owner store.Owner) (d proposal.Decision, err error) {
	pods, err := a.census(ctx, owner)
	if err != nil {
		return d, err
	}
	a.plans.rollout = proposal.Rollout{}
	d = proposal.Plan(a.input(owner, pods, a.plans.rollout))
	next := owner.Record.State
	if d.Next != nil {
		next = *d.Next
	}
	if _, has := next.Slots.Of(a.o.Pod); !owner.Rolls() || a.known.Ends || has && len(owner.Record.State.Handover) == 0 {
		return d, nil
	}
	own, err := a.o.Store.RevisionOf(ctx, a.pod)
	switch {
	case errors.Is(err, store.ErrGone): // no revision of the owner's any more
		return d, nil
	case err != nil:
		return d, err
	}
	a.plans.rollout = proposal.Rollout{Current: own.Current(owner), MaxUnavailable: owner.Rollout.MaxUnavailable, Available: own.Available}
	return proposal.Plan(a.input(owner, pods, a.plans.rollout)), nil
}

// census lists the live pods that matter to a plan.
func (a *Allocator) census(ctx context.Context, owner store.Owner) ([]proposal.Pod, error) {
	c := counter{owner: owner, seen: map[string]bool{}}
	for _, selector := range []string{owner.Selector, assignment.HoldersSelector(owner.String())} {
		o := metav1.ListOptions{LabelSelector: selector, FieldSelector: store.LivePods}
		err := a.o.Store.EachPod(ctx, owner.Namespace, o, func(pod *metav1.PartialObjectMetadata) { c.add(pod, selector == owner.Selector) })
		if err != nil {
			return nil, err
		}
	}
	return c.pods, nil
}

// guess is census as far as the streams know.
func (a *Allocator) guess(owner store.Owner) []proposal.Pod {
	c := counter{owner: owner, seen: map[string]bool{}}
	for _, pod := range a.plans.owned.Objects() {
		c.add(pod, true)
	}
	for _, pod := range a.plans.labelled.Objects() {
		c.add(pod, false)
	}
	return c.pods
}

type counter struct {
	owner store.Owner
	seen  map[string]bool // by UID
	pods  []proposal.Pod
}

func (c *counter) add(meta *metav1.PartialObjectMetadata, owned bool) {
	if c.seen[string(meta.UID)] {
		return
	}
	c.seen[string(meta.UID)] = true
	pod := proposal.Pod{Name: meta.Name, UID: string(meta.UID), Created: meta.CreationTimestamp.Time, Owned: owned, Ordinal: proposal.NoOrdinal}
	pod.Receipt, _ = receipt.Of(meta, c.owner.String()) // one that cannot be read locks
	if n, ok := c.owner.Ordinal(meta); ok {
		pod.Ordinal = n
	}
	if end := meta.DeletionTimestamp; end != nil {
		pod.Terminating, pod.Deadline = true, end.Time // Kubernetes has added the grace period to this time
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		pod.Controller = string(controller.UID)
	}
	c.pods = append(c.pods, pod)
}

func (a *Allocator) input(owner store.Owner, pods []proposal.Pod, rollout proposal.Rollout) proposal.Input {
	p, now := &a.plans, a.clock.Now()
	in := proposal.Input{
		Count: owner.Count, State: owner.Record.State, Pods: pods, Me: a.o.Pod, Rollout: rollout, Room: owner.Room(), Now: now,
		Partitions: proposal.Partitions{Wish: owner.Wish, Vacant: p.vacant.over(owner.Wish.FailoverAfter, now), Joins: a.joins(), Strategies: a.o.strategy},
	}
	if failures := a.receipt().Failures(); failures > 0 {
		in.StandsBack = now.Sub(p.began) < a.standBackFor(failures)
	}
	if !p.reservedSince.IsZero() {
		in.FreeFor = time.Duration(math.Ceil(float64(now.Sub(p.reservedSince)) * float64(time.Second) / float64(a.pace.Longer(time.Second))))
	}
	return in
}

// inVain takes in a plan that changes nothing.
func (a *Allocator) inVain(owner store.Owner, d proposal.Decision) {
	p, now := &a.plans, a.clock.Now()
	a.retry.Reset()
	a.known.Worth = false
	if a.tenure.Lock.State == receipt.Locks {
		p.vainUntil = now.Add(a.pace.Part(lookTime*time.Duration(max(1, len(owner.Record.State.Slots)))) * 2 / 3)
		return
	}
	p.made, p.planned, p.outcome, a.known.Outcome = true, owner, d, true
	p.contenders, p.unsureAt = max(1, d.Waiting), now.Add(a.pace.ReadAgain())
	switch {
	case d.Reserved == 0:
		p.reservedSince = time.Time{}
	case p.reservedSince.IsZero():
		p.reservedSince = now
	}
	if d.TooLarge != nil {
		a.happened.Tell(event.NoRoom{About: a.view.about(), Detail: d.TooLarge.Detail()})
	}
}
