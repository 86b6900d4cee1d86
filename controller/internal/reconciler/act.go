package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/invariant"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// swap returns a write that replaces the pod's receipt. If next has no owner, it gets this owner.
func (p *pass) swap(name string, of step, says string, next receipt.Receipt) write {
	return write{pod: name, step: of, says: says, do: func(ctx context.Context, pod *podMeta) (*podMeta, error) {
		next.UID, next.Owner, next.Write = string(pod.UID), cmp.Or(next.Owner, p.ref.String()), receipt.Draw()
		return p.store.Take(ctx, pod, next)
	}}
}

// lock writes receipts: T2, withdrawals, and the receipts that let programs begin after T3.
func (p *pass) lock(ctx context.Context, d decision.Decision) error {
	all := make([]write, 0, len(d.Take)+len(d.Withdraw)+len(d.Begin))
	for _, t := range d.Take {
		p.tellUnlocked(ctx, t)
		all = append(all, p.swap(t.Pod, stepTake, fmt.Sprint("slot ", t.ID), receipt.Receipt{
			Owner: t.Under, State: receipt.Locks, Share: receipt.Share{ID: t.ID}, Token: t.Token, Number: t.Number,
		}))
	}
	for _, name := range d.Withdraw {
		all = append(all, p.swap(name, stepWithdraw, "", receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()}))
	}
	var shows shown
	if len(d.Begin) > 0 {
		shows = shownBy(p.world.Locks)
	}
	for _, b := range d.Begin {
		invariant.Must(shows.confirms(b, p.metas[b.Pod].Annotations[receipt.Key]), "a program begins only under a lock that T3 showed, and that of no other pod")
		all = append(all, write{pod: b.Pod, step: stepBegin, do: func(ctx context.Context, pod *podMeta) (*podMeta, error) {
			next := receipt.Receipt{
				UID: string(pod.UID), Owner: b.Under, State: receipt.Locks, Share: receipt.Share{ID: b.ID}, Begun: true, Token: b.Token, Number: b.Number, Write: receipt.Draw(),
			}
			written, err := p.store.Begin(ctx, pod, next, annotations(b.Published), b.Gated)
			if err == nil {
				p.metrics.began(p.store.Clock.Now().Sub(pod.CreationTimestamp.Time))
			}
			return written, err
		}})
	}
	p.write(ctx, p.slots, all, nil)
	return nil
}

// shown is what T3 showed: the receipts by pod, and which pods lock each slot or machine number, or run under it.
type shown struct {
	receipts       map[string]string
	slots, numbers map[int][]string
}

func shownBy(locks []decision.Lock) shown {
	s := shown{make(map[string]string, len(locks)), make(map[int][]string, len(locks)), map[int][]string{}}
	for i := range locks {
		l := &locks[i]
		s.receipts[l.Pod] = l.Text
		for _, id := range [...]int{l.Receipt.Slot(), l.Runs} {
			s.slots[id] = append(s.slots[id], l.Pod)
		}
		if s.numbers[l.Number] = append(s.numbers[l.Number], l.Pod); l.Receipt.Locked() {
			s.numbers[l.Receipt.Number] = append(s.numbers[l.Receipt.Number], l.Pod)
		}
	}
	return s
}

// confirms reports whether T3 showed the pod's receipt, and no other lock of its slot or its number.
func (s shown) confirms(b decision.Begin, receipt string) bool {
	another := func(pod string) bool { return pod != b.Pod }
	text, has := s.receipts[b.Pod]
	return has && text == receipt && !slices.ContainsFunc(s.slots[b.ID], another) &&
		(!b.Gated || b.Number == 0 || !slices.ContainsFunc(s.numbers[b.Number], another))
}

// say writes the new count and other changes on running pods, and proposals for agents. Whatever these write in response counts as news.
func (p *pass) say(ctx context.Context, d decision.Decision) error {
	all := make([]write, 0, len(d.Publish))
	for _, b := range d.Publish {
		all = append(all, write{pod: b.Pod, step: stepCount, says: fmt.Sprint(b.Published.ID, b.Published.Count, b.Published.StartCount, b.Published.Turn, b.Published.Number), do: func(ctx context.Context, pod *podMeta) (*podMeta, error) {
			set := annotations(b.Published)
			written, err := p.store.Publish(ctx, pod, set)
			if _, has := set[receipt.StartCountKey]; has && errors.Is(err, request.ErrRefused) {
				delete(set, receipt.StartCountKey) // policies of an earlier release refuse this key
				if older, wrong := p.store.Publish(ctx, pod, set); wrong == nil {
					return older, nil
				}
			}
			return written, err
		}})
	}
	p.write(ctx, p.slots, all, nil)
	p.propose(ctx, d.Propose)
	return nil
}

func annotations(w decision.Published) map[string]string {
	set := map[string]string{receipt.IDKey: w.ID, receipt.CountKey: w.Count, receipt.IdentityKey: w.Identity}
	if w.StartCount != "" {
		set[receipt.StartCountKey] = w.StartCount
	}
	if w.Number != "" {
		set[receipt.NumberKey] = w.Number
	}
	if w.Turn != "" {
		set[receipt.TurnKey] = w.Turn
	}
	return set
}
