package reconciler

import (
	"context"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// probe asks by dry runs whether pods can be written again. If such pods were proposed a slot from time to time instead, an older pod would make room for them
// each time.
func (p *pass) probe(ctx context.Context, d decision.Decision) error {
	var all []write
	for _, name := range d.Probe {
		q := p.pod(name)
		of := p.memory.refusal(p.metas[q.Name].UID)
		if of == "" { // a write of this pass was accepted
			continue
		}
		switch w := (write{pod: q.Name, step: of}); {
		case of == stepCount: // the count went back to what the pod knows
			delete(p.memory.writes, writeKey{p.metas[q.Name].UID, of})
		case q.Agent:
			next := q.Proposal
			next.UID, next.Count = q.UID, next.Count+1
			w.do = func(ctx context.Context, pod *podMeta) (*podMeta, error) {
				_, err := p.store.Dry().SetProposal(ctx, pod, "", next)
				return pod, err
			}
			all = append(all, w)
		case q.Assigned && q.Gated && !q.Receipt.Locked(): // test everything that such a pod gets in one write
			w.do = func(ctx context.Context, pod *podMeta) (*podMeta, error) {
				begun := receipt.Receipt{UID: q.UID, Owner: p.ref.String(), State: receipt.Locks, Begun: true, Token: 1, Write: receipt.Draw()}
				_, err := p.store.Dry().Begin(ctx, pod, begun, annotations(decision.Published{ID: "0", Count: "1", StartCount: "1", Identity: "{}"}), true)
				return pod, err
			}
			all = append(all, w)
		}
	}
	p.write(ctx, p.slow, all, nil)
	for _, w := range all {
		if p.memory.refuses(p.metas[w.pod].UID) == nil {
			p.requeue(soon)
		}
	}
	return nil
}
