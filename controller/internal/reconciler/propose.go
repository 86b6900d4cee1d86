package reconciler

import (
	"context"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// propose writes proposals for agents. A proposal that is not due yet does not count towards the batch.
func (p *pass) propose(ctx context.Context, proposals []decision.Propose) {
	told, rest, all := 0, len(proposals), make([]write, 0, len(proposals))
	for _, b := range proposals {
		w := write{pod: b.Pod, step: stepPropose, says: b.Next.Encode(), do: func(ctx context.Context, pod *podMeta) (*podMeta, error) {
			written, err := p.store.SetProposal(ctx, pod, b.Text, b.Next)
			if was, _ := receipt.ProposalOf(pod); err == nil && was.Confirmed == nil && b.Text != "" && !b.Next.Confirmed.Slot {
				p.metrics.began(p.store.Clock.Now().Sub(pod.CreationTimestamp.Time))
			}
			return written, err
		}}
		if !p.due(w) {
			continue
		}
		if b.Text == "" {
			if told++; told > batch {
				p.requeue(soon)
				break
			}
		}
		if b.CanWait() {
			rest = min(rest, len(all))
		}
		all = append(all, w)
	}
	p.inTurn(ctx, all, min(rest, len(all)))
}

// inTurn first sends the urgent proposals, all[:rest], then those that can wait. After news of the owner it leaves the remaining ones to the next pass, because
// the news may be about an idle partition. It sends at least a few in any case, because news may never stop.
func (p *pass) inTurn(ctx context.Context, all []write, rest int) {
	p.write(ctx, p.slots, all[:rest], nil)
	p.write(ctx, p.slow, all[rest:], func(sent int) bool { return sent >= few && p.memory.news.Load() != p.heard })
}
