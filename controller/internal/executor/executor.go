package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/idalloc/idalloc/controller/internal/heart"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// inFlight is how many patches are under way at a time. More make an API server on two cores no faster. few is how many more tell processes what can
	// wait, so that nothing urgent queues behind that.
	inFlight, few = 32, 8
	// refusedAfter is when a removal that a budget refused is tried again, mixedAfter when pods that the cache does not have are listed again while
	// something is to come, and changedAfter when an agent is told again whose pod has changed meanwhile.
	refusedAfter, mixedAfter, changedAfter = 5 * time.Second, 2 * time.Second, 2 * time.Second
	// unheardAfter is when an owner is read again that no watch has: a ReplicaSet without the label.
	unheardAfter = 20 * time.Second
	// goneAfter is when the controller looks whether pods that the cache does not have are gone, which no watch shows. With its jitter it ends before the
	// ten seconds after which the pages say that no entry of a dead pod stays.
	goneAfter = 5 * time.Second
)

// Executor reconciles owners.
type Executor struct {
	store   *store.Store
	cache   client.Reader // what the watches have shown
	server  client.Reader // the API server
	writer  client.Client
	log     logr.Logger
	name    string
	kinds   Kinds
	metrics *Metrics
	slots   chan struct{} // one for each of inFlight
	slow    chan struct{} // one for each of few
	// others gets owners that a reconcile of something below them has found.
	others chan event.TypedGenericEvent[store.Ref]

	// told are the Events of the last minutes.
	told *expiring.Expiring

	mu sync.Mutex
	// tempers are how patient the reconciles of each owner are by now.
	tempers map[store.Ref]*temper
}

// Reconcile brings one owner's pods to where they should be. It implements reconcile.TypedReconciler.
func (x *Executor) Reconcile(ctx context.Context, ref store.Ref) (reconcile.Result, error) {
	known, err := x.settle(ctx, ref)
	if err != nil || !known {
		return reconcile.Result{}, err
	}
	t := x.temper(ref)
	result, err := x.reconcile(ctx, ref, t)
	x.tellForbidden(ctx, ref, t, err)
	return result, err
}

func (x *Executor) reconcile(ctx context.Context, ref store.Ref, t *temper) (reconcile.Result, error) {
	owner, err := x.owner(ctx, ref, t)
	if errors.Is(err, store.ErrGone) {
		x.metrics.forget(ref)
		x.calm(ref)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	p := &pass{
		Executor: x, ref: ref, owner: owner, temper: t, heard: t.news.Load(), written: map[string]*podMeta{},
		log: x.log.WithValues("owner", ref.String(), "namespace", ref.Namespace),
	}
	err = p.run(ctx)
	if errors.Is(err, store.ErrConflict) {
		x.metrics.conflicts.Inc()
	}
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrGone) {
		t.read = store.Owner{}
		p.log.V(1).Info("something changed meanwhile", "detail", err.Error())
		return reconcile.Result{RequeueAfter: p.temper.conflicts.Next()}, nil
	}
	if err == nil {
		p.temper.conflicts.Reset()
	}
	return reconcile.Result{RequeueAfter: p.after}, err
}

// owner returns the owner. One of a kind whose generation counts annotations is read again only when that has grown.
func (x *Executor) owner(ctx context.Context, ref store.Ref, t *temper) (store.Owner, error) {
	was := t.read
	if meta, err := x.ownerMeta(ctx, ref); err == nil && was.UID == meta.UID &&
		(meta.ResourceVersion == was.ResourceVersion || ref.Rolls() && meta.Generation <= was.Generation) {
		// The Deployment controller writes the revision with the status, so the generation does not count it.
		was.Rollout.Revision = cmp.Or(meta.Annotations[revisionKey], was.Rollout.Revision)
		return was, nil
	}
	var err error
	if t.read, err = x.store.Get(ctx, ref); err != nil {
		t.read = store.Owner{}
		return t.read, fmt.Errorf("read %s: %w", ref, err)
	}
	return t.read, nil
}

// pass is one reconcile of an owner.
type pass struct {
	*Executor

	ref    store.Ref
	owner  store.Owner
	temper *temper
	// heard is the news of the owner when this pass began.
	heard int64
	log   logr.Logger
	world heart.World
	// sets are the owner's ReplicaSets by UID, and whether each has the label. current is the UID of the current one, empty if that is not known.
	sets    map[string]bool
	current string
	// metas are the pods' metadata by name, as last read or written.
	metas map[string]*podMeta
	// written are the pods that this pass wrote.
	written map[string]*podMeta
	// writing is held while answers to writes are taken in.
	writing sync.Mutex
	// former names the owners that pods come from.
	former []string
	// strange says that T3 showed a lock of a pod that neither the cache nor the map has.
	strange bool
	after   time.Duration
}

// run does everything that is to be done by what is known: plan, T2, T3, Begin, the count, removals.
func (p *pass) run(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	if len(p.world.Pods) == 0 && len(p.owner.Record.State.Slots) == 0 {
		p.metrics.forget(p.ref)
		return nil
	}
	d, damped, err := p.plan(ctx)
	if err != nil || damped {
		return err
	}
	p.planned(d.Plan)
	if left := p.temper.clashes.Left(p.store.Clock.Now()); left > 0 { // what T3 has taken from a pod is taken again later
		p.sooner(left)
		d.Take = slices.DeleteFunc(d.Take, func(t heart.Take) bool { return !t.Begun })
	}
	if left := p.temper.unkept.Left(p.store.Clock.Now()); left > 0 {
		p.sooner(left)
		d.Take = nil
	}
	if len(d.Take)+len(d.Withdraw) > 0 {
		err = errors.Join(p.take(ctx, d.Take), p.withdraw(ctx, d.Withdraw))
		p.temper.took(d.Take, p.written, p.store.Clock.Now(), err)
		d = heart.Decide(p.world)
	}
	if d.Confirm {
		if err := p.confirm(ctx, store.Sought{IDs: d.Only, Since: p.newest()}); err != nil {
			return err
		}
		d = heart.Decide(p.world)
		if len(d.Withdraw) > 0 {
			p.temper.clashes.Again(p.store.Clock.Now())
		}
		err = errors.Join(err, p.begin(ctx, d.Begin), p.withdraw(ctx, d.Withdraw))
		if p.strange { // only a plan that knows the pod proposes its slot to no other one
			_, _, wrong := p.plan(ctx)
			err = errors.Join(err, wrong)
		}
	}
	err = errors.Join(err, p.publish(ctx, d.Publish), p.propose(ctx, d.Propose), p.caughtUp(ctx))
	p.rest(ctx, d)
	if err == nil && len(d.Remove) > 0 {
		err = p.remove(ctx)
	}
	p.tell(ctx, d)
	return err
}

// plan decides, and writes the map.
func (p *pass) plan(ctx context.Context) (d heart.Decision, damped bool, err error) {
	d = heart.Decide(p.world)
	if d.Plan.Next != nil && !p.temper.listed { // a process that begins knows of no pods that wait outside of the cache
		if err := p.lookOutside(ctx); err != nil {
			return d, false, err
		}
		d = heart.Decide(p.world)
	}
	if d.Failing {
		p.sooner(p.temper.failing.Left(p.world.Now))
	}
	if d.Plan.Next == nil {
		return d, false, nil
	}
	if left := p.temper.damped(p.store.Clock.Now()); left > 0 {
		p.sooner(left)
		return d, true, nil
	}
	written, err := p.store.Propose(ctx, p.owner, *d.Plan.Next)
	p.temper.proposed(p.owner.Record.State, d, p.store.Clock.Now(), err)
	if err != nil {
		p.temper.read = store.Owner{}
		return d, false, fmt.Errorf("plan: %w", err)
	}
	p.owner, p.temper.read = written, written
	p.world.Owner = p.ownerOf()
	return heart.Decide(p.world), false, nil
}

// rest says when the owner is looked at again if nothing happens.
func (p *pass) rest(ctx context.Context, d heart.Decision) {
	p.metrics.observe(p.ref, d.Waits)
	p.sooner(d.After)
	p.sooner(p.mixed(len(d.Waits) > 0))
	if _, err := p.ownerMeta(ctx, p.ref); err != nil {
		p.sooner(wait.Jitter(unheardAfter, 1))
	}
}

func (p *pass) sooner(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// mixed returns when pods that take for themselves are to be listed again beside pods of the controller. The cache does not have the former, so no event
// tells of them. It is soon if something is to come: pods wait, or are of an older revision.
func (p *pass) mixed(waits bool) time.Duration {
	others, ours := p.unlabelled(), false // a revision of such pods may have none for a moment, and nothing tells of the next one
	for _, q := range p.world.Pods {
		others, ours = others || !q.Assigned && !q.Agent, ours || q.Assigned || q.Agent
		waits = waits || q.Assigned && p.ref.Rolls() && q.Controller != p.world.Owner.Revision
	}
	switch {
	case !others || !ours:
		return 0
	case waits:
		return mixedAfter
	}
	return wait.Jitter(goneAfter, 1)
}
