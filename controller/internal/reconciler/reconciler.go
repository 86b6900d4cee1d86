package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// inFlight is how many patches are under way at a time. More make an API server on two cores no faster. few is how many more tell processes what can
	// wait, so that nothing urgent queues behind that.
	inFlight, few = 32, 8
	// refusedAfter: retry a removal that a budget refused.
	refusedAfter = 5 * time.Second
	// mixedAfter: list pods that the cache does not have again while something is to come.
	mixedAfter = 2 * time.Second
	// passWithin bounds a pass. What is left then is the next one's.
	passWithin = time.Minute
	// mixedLast: the same after several lists that showed the same, before the ten seconds of goneAfter.
	mixedLast = 8 * time.Second
	// unheardAfter is when an owner is read again that no watch has: a ReplicaSet without the label.
	unheardAfter = 20 * time.Second
	// goneAfter is when the controller looks whether pods that the cache does not have are gone, which no watch shows. With its jitter it ends before the
	// ten seconds after which the pages say that no entry of a dead pod stays.
	goneAfter = 5 * time.Second
)

// Reconciler reconciles owners.
type Reconciler struct {
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
func (x *Reconciler) Reconcile(ctx context.Context, ref store.Ref) (reconcile.Result, error) {
	known, err := x.settle(ctx, ref)
	if err != nil || !known {
		return reconcile.Result{}, err
	}
	return x.reconcile(ctx, ref, x.temper(ref))
}

func (x *Reconciler) reconcile(ctx context.Context, ref store.Ref, t *temper) (reconcile.Result, error) {
	owner, err := x.owner(ctx, ref, t)
	if errors.Is(err, store.ErrGone) {
		x.metrics.forget(ref)
		x.calm(ref)
		return reconcile.Result{}, nil
	}
	if err != nil {
		x.tellForbidden(ctx, ref, t, err)
		return reconcile.Result{}, err
	}
	p := &pass{
		Reconciler: x, ref: ref, owner: owner, temper: t, heard: t.news.Load(), written: map[string]*podMeta{},
		log: x.log.WithValues("owner", ref.String(), "namespace", ref.Namespace),
	}
	err = p.run(ctx)
	x.tellForbidden(ctx, ref, t, errors.Join(err, p.forbidden))
	switch {
	case err == nil:
		t.failures.Reset()
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrGone):
		t.read = store.Owner{}
		p.log.V(1).Info("something changed meanwhile", "detail", err.Error())
		p.sooner(t.failures.Next())
	case p.after == 0 || p.after >= lastRetry: // the queue comes again as soon
		return reconcile.Result{}, err
	default:
		// Log: a pass over a workload failed in part, and comes again.
		// Do: what the error says.
		p.log.Error(err, "a pass failed")
		p.sooner(t.failures.Next())
	}
	return reconcile.Result{RequeueAfter: p.after}, nil
}

// owner returns the owner. One of a kind whose generation counts annotations is read again only when that has grown.
func (x *Reconciler) owner(ctx context.Context, ref store.Ref, t *temper) (store.Owner, error) {
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
	*Reconciler

	ref    store.Ref
	owner  store.Owner
	temper *temper
	// heard is the news of the owner when this pass began.
	heard int64
	log   logr.Logger
	world decision.World
	// sets are the owner's ReplicaSets by UID, and whether each has the label. current is the UID of the current one, empty if that is not known.
	sets    map[string]bool
	current string
	// frozen names a ReplicaSet beside the owner's that is about to change hands.
	frozen string
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
	// keeps: the map stays as it is in this pass, because its write failed or is put off.
	keeps bool
	// forbidden is an error about a right that the controller lacks, of a write that failed.
	forbidden error
	// after is when the next pass comes, 0 if nothing but news brings it.
	after time.Duration
	// ends is when no further write begins. Those under way end by themselves, each by its own time. The zero time is never.
	ends time.Time
}

func (p *pass) over() bool { return !p.ends.IsZero() && p.store.Clock.Now().After(p.ends) }

// run does everything that is to be done by what is known: plan, T2, T3, Begin, the count, removals. Each step has a decision on what the one before has
// left, and an error of one keeps no other one from its work.
func (p *pass) run(ctx context.Context) error {
	p.ends = p.store.Clock.Now().Add(passWithin)
	if err := p.look(ctx); err != nil {
		return err
	}
	if len(p.world.Pods) == 0 && len(p.owner.Record.State.Slots) == 0 {
		p.metrics.forget(p.ref)
		return nil
	}
	d, err := decision.Decide(p.world), error(nil)
	for _, step := range []func(context.Context, decision.Decision) (bool, error){p.plan, p.take, p.confirm, p.begin, p.replan, p.say, p.probe, p.remove} {
		did, wrong := step(ctx, d)
		if did {
			d = decision.Decide(p.world)
		}
		err = errors.Join(err, wrong)
	}
	if p.over() || d.Confirm && err == nil {
		p.sooner(soon)
	}
	err = errors.Join(err, p.caughtUp(ctx))
	p.rest(ctx, d)
	p.tell(ctx, d)
	return err
}

// plan writes the map.
func (p *pass) plan(ctx context.Context, d decision.Decision) (did bool, err error) {
	if d.Plan.Next != nil && !p.temper.listed { // a process that begins knows of no pods that wait outside of the cache
		if err := p.lookOutside(ctx); err != nil {
			return p.keep(), err
		}
		d, did = decision.Decide(p.world), true
	}
	if d.Failing {
		p.sooner(p.temper.failing.Left(p.world.Now))
	}
	if d.Plan.Next == nil {
		p.temper.unwritten = nil
		return did, nil
	}
	if left := p.temper.damped(p.store.Clock.Now()); left > 0 {
		p.sooner(left)
		return p.keep(), nil
	}
	written, err := p.store.Propose(ctx, p.owner, *d.Plan.Next)
	p.temper.proposed(p.owner.Record.State, d, p.store.Clock.Now(), err)
	if p.temper.unwritten = err; err != nil {
		p.fail(stepMap, err)
		p.temper.read = store.Owner{}
		return p.keep(), fmt.Errorf("plan: %w", err)
	}
	p.owner, p.temper.read = written, written
	p.world.Owner = p.ownerOf()
	return true, nil
}

// keep has the rest of the pass go by the map as it stands.
func (p *pass) keep() (did bool) {
	p.keeps, p.world.Keeps = true, true
	return true
}

// replan plans for pods that T3 showed and the plan did not know: no plan proposes their slots to others then.
func (p *pass) replan(ctx context.Context, d decision.Decision) (bool, error) {
	if !p.strange || p.keeps {
		return false, nil
	}
	return p.plan(ctx, d)
}

// rest says when the owner is looked at again if nothing happens.
func (p *pass) rest(ctx context.Context, d decision.Decision) {
	p.metrics.observe(p.ref, d)
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
		return p.temper.again(p.world.Pods)
	}
	return wait.Jitter(goneAfter, 1)
}
