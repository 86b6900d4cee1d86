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
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

const (
	// inFlight is how many patches are in flight at a time. More do not make an API server with two cores faster. few is how many more are for proposals that
	// can wait, so that nothing urgent queues behind them.
	inFlight, few = 32, 8
	// refusedAfter: retry a removal that a budget refused.
	refusedAfter = 5 * time.Second
	// mixedAfter: list pods that are not in the cache again while a change is expected.
	mixedAfter = 2 * time.Second
	// passWithin bounds a pass. The next pass does the rest.
	passWithin = time.Minute
	// mixedLast: the longest such interval, after several lists without a change. It is below the ten seconds that goneAfter must keep.
	mixedLast = 8 * time.Second
	// unheardAfter: read an owner again that no watch covers, which is a ReplicaSet without the label.
	unheardAfter = 20 * time.Second
	// goneAfter: check whether pods that are not in the cache are gone, because no watch shows that. With jitter it stays below the ten seconds after which, by
	// the docs, no entry of a dead pod is left.
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
	kinds   kinds.Kinds
	metrics *Metrics
	slots   chan struct{} // one for each of inFlight
	slow    chan struct{} // one for each of few
	// others receives owners that a reconcile of a ReplicaSet or a pod has found.
	others chan event.TypedGenericEvent[kinds.Ref]

	// told records which Events were written in the last minutes.
	told *expiring.Expiring

	mu       sync.Mutex
	memories map[kinds.Ref]*memory
}

// Reconcile runs one pass over an owner. It implements reconcile.TypedReconciler.
func (x *Reconciler) Reconcile(ctx context.Context, ref kinds.Ref) (reconcile.Result, error) {
	known, err := x.settle(ctx, ref)
	if err != nil || !known {
		return reconcile.Result{}, err
	}
	return x.reconcile(ctx, ref, x.memory(ref))
}

func (x *Reconciler) reconcile(ctx context.Context, ref kinds.Ref, m *memory) (reconcile.Result, error) {
	owner, err := x.owner(ctx, ref, m)
	if errors.Is(err, request.ErrGone) {
		x.forget(ref)
		return reconcile.Result{}, nil
	}
	if err != nil {
		x.tellForbidden(ctx, ref, m, err)
		return reconcile.Result{}, err
	}
	p := &pass{
		Reconciler: x, ref: ref, owner: owner, memory: m, heard: m.news.Load(), written: map[string]*podMeta{},
		log: x.log.WithValues("owner", ref.String(), "namespace", ref.Namespace),
	}
	err = p.run(ctx)
	x.tellForbidden(ctx, ref, m, errors.Join(err, p.forbidden))
	switch {
	case err == nil:
		m.failures.Reset()
	case errors.Is(err, request.ErrConflict) || errors.Is(err, request.ErrGone):
		m.read = store.Owner{}
		p.log.V(1).Info("something changed meanwhile", "detail", err.Error())
		p.requeue(m.failures.Next())
	case p.after == 0 || p.after >= lastRetry: // the queue retries at least as soon
		return reconcile.Result{}, err
	default:
		// Log: a pass over a workload failed in part, and is retried.
		// Do: what the error says.
		p.log.Error(err, "a pass failed")
		p.requeue(m.failures.Next())
	}
	return reconcile.Result{RequeueAfter: p.after}, nil
}

// owner returns the owner. If the generation of its kind counts annotations, it is read again only after the generation has grown.
func (x *Reconciler) owner(ctx context.Context, ref kinds.Ref, m *memory) (store.Owner, error) {
	was := m.read
	if meta, err := x.ownerMeta(ctx, ref); err == nil && was.UID == meta.UID &&
		(meta.ResourceVersion == was.ResourceVersion || ref.Rolls() && meta.Generation <= was.Generation) {
		// The Deployment controller writes the revision with the status, so the generation does not count it.
		was.Rollout.Revision = cmp.Or(meta.Annotations[revisionKey], was.Rollout.Revision)
		return was, nil
	}
	var err error
	if m.read, err = x.store.GetOwner(ctx, ref); err != nil {
		m.read = store.Owner{}
		return m.read, fmt.Errorf("read %s: %w", ref, err)
	}
	return m.read, nil
}

// run looks, then decides and does the first step that is due, until none is left. The error of a step is returned at the end and does not stop other steps.
// Errors of writes on pods are not returned: each such pod is retried by itself.
func (p *pass) run(ctx context.Context) (err error) {
	p.ends = p.store.Clock.Now().Add(passWithin)
	if err := p.look(ctx); err != nil {
		return err
	}
	if len(p.world.Pods) == 0 && len(p.owner.Record.State.Slots) == 0 {
		p.metrics.forget(p.ref)
		return nil
	}
	do := map[decision.Step]func(context.Context, decision.Decision) error{
		decision.StepList: p.listAll, decision.StepMap: p.plan, decision.StepLock: p.lock, decision.StepConfirm: p.confirm, decision.StepTell: p.say,
		decision.StepProbe: p.probe, decision.StepVerify: p.verify, decision.StepRemove: p.remove,
	}
	d, done := decision.Decide(p.world), decision.Steps{}
	for step := d.First(done); step != decision.StepNone && !p.over(); step = d.First(done) {
		wrong := do[step](ctx, d)
		done.Did(step, wrong)
		err = errors.Join(err, wrong)
		d = decision.Decide(p.world)
	}
	if p.over() || d.Confirm && err == nil {
		p.requeue(soon)
	}
	err = errors.Join(err, p.caughtUp(ctx))
	p.rest(ctx, d)
	p.tell(ctx, d)
	return err
}

// listAll lists the pods that no watch covers.
func (p *pass) listAll(ctx context.Context, _ decision.Decision) error {
	err := p.lookOutside(ctx)
	p.world.Keeps = err != nil
	return err
}

// plan writes the map. If that fails or must wait, the rest of the pass uses the map as it is.
func (p *pass) plan(ctx context.Context, d decision.Decision) error {
	p.world.Keeps = true
	if left := p.memory.left(p.store.Clock.Now()); left > 0 {
		p.requeue(left)
		return nil
	}
	written, err := p.store.Propose(ctx, p.owner, *d.Plan.Next)
	p.memory.wrote(p.owner.Record.State, d, p.store.Clock.Now(), err)
	if p.memory.err = err; err != nil {
		p.fail(stepMap, err)
		p.memory.read = store.Owner{}
		return fmt.Errorf("plan: %w", err)
	}
	p.owner, p.memory.read = written, written
	p.world.Owner, p.world.Keeps = p.ownerOf(), false
	return nil
}

// rest sets when the owner is looked at again if nothing happens.
func (p *pass) rest(ctx context.Context, d decision.Decision) {
	if d.Plan.Next == nil && !p.world.Keeps {
		p.memory.err = nil
	}
	if d.Failing {
		p.requeue(p.memory.failing.Left(p.world.Now))
	}
	p.planned(d.Plan)
	p.metrics.observe(p.ref, d)
	p.memory.ends.See(p.world.Pods, p.store.Clock.Now()) // also pods that end before the next look
	p.requeue(d.After)
	p.requeue(p.mixed(len(d.Waits) > 0))
	if _, err := p.ownerMeta(ctx, p.ref); err != nil {
		p.requeue(wait.Jitter(unheardAfter, 1))
	}
}

// mixed returns the delay until pods that run idalloc themselves are listed again, if the owner also has pods of the controller. The cache does not have the
// former, so no event reports them. The delay is short if a change is expected: pods wait, or are of an older revision.
func (p *pass) mixed(waits bool) time.Duration {
	others, ours := p.unlabelled(), false // such a revision may have no pods for a moment, and no event reports the next one
	for _, q := range p.world.Pods {
		others, ours = others || !q.Assigned && !q.Agent, ours || q.Assigned || q.Agent
		waits = waits || q.Assigned && p.ref.Rolls() && q.Controller != p.world.Owner.Revision
	}
	switch {
	case !others || !ours:
		return 0
	case waits:
		return p.memory.outside.again(p.world.Pods)
	}
	return wait.Jitter(goneAfter, 1)
}
