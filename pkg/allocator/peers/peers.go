// Package peers follows other pods for one process: for a waiter the pods whose end could free a slot, and for a holder one other holder.
package peers

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Peers are the pods that a process follows. One goroutine may use it at a time.
type Peers struct {
	store *store.Store
	wake  chan struct{}
	// owned follows the owner's pods. labelled follows those with a lock, which may have been relabelled.
	owned, labelled *watch.PodStream
	stop            context.CancelFunc
	neighbour       neighbour
}

// New returns Peers that follow no pod. wake gets a value when there is news.
func New(s *store.Store, wake chan struct{}) *Peers { return &Peers{store: s, wake: wake} }

// Follow follows the pods that could free a slot, until Leave or the end of ctx. It returns false if it already followed them. It does not block.
func (p *Peers) Follow(ctx context.Context, owner store.Owner, log logr.Logger) (begun bool) {
	if p.owned != nil {
		return false
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.owned = watch.Selected(ctx, p.store, owner.Namespace, owner.Selector, log)
	p.labelled = watch.Selected(ctx, p.store, owner.Namespace, assignment.HoldersSelector(owner.String()), log)
	p.owned.Wake(p.wake)
	p.labelled.Wake(p.wake)
	return true
}

// Close stops following all pods, and blocks until that has ended.
func (p *Peers) Close() {
	p.neighbour.close()
	p.Leave()
}

// Leave ends what Follow began, and blocks until it has ended. A pod that has its slot does not need it.
func (p *Peers) Leave() {
	if p.stop != nil {
		p.stop()
		<-p.owned.Done()
		<-p.labelled.Done()
		p.owned, p.labelled, p.stop = nil, nil, nil
	}
}

// Synced reports whether Pods knows all of them.
func (p *Peers) Synced() bool { return p.owned != nil && p.owned.Synced() && p.labelled.Synced() }

// Pods returns what census.Survey would, as far as the watches know. Only a survey finds out which pods have come from another owner.
func (p *Peers) Pods(owner store.Owner) []proposal.Pod {
	seen := map[string]bool{} // by UID
	var pods []proposal.Pod
	for _, stream := range []*watch.PodStream{p.owned, p.labelled} {
		for _, meta := range stream.Objects() {
			if !seen[string(meta.UID)] {
				seen[string(meta.UID)] = true
				pod, _ := census.PodOf(owner, meta, stream == p.owned) // an unreadable receipt locks
				pods = append(pods, pod)
			}
		}
	}
	return pods
}
