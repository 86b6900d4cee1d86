package reconciler

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// podMeta is a pod's metadata as the store uses it.
type podMeta = metav1.PartialObjectMetadata

// pass is one reconcile of an owner. Its world ends with it: what must survive is in the memory.
type pass struct {
	*Reconciler

	ref    kinds.Ref
	memory *memory
	log    logr.Logger
	// owner, world and metas (the pods' metadata by name) are what the pass knows. Each step reads or writes, and records the answers here.
	owner store.Owner
	world decision.World
	metas map[string]*podMeta
	// sets has the UIDs of the owner's ReplicaSets, with true for those that have the label. current is the UID of the current one, empty if it is not known.
	sets    map[string]bool
	current string
	// heard is memory.news when this pass began.
	heard int64
	// written are the pods that this pass wrote, by name.
	written map[string]*podMeta
	// writing guards metas, written and the back-offs while writes are in flight.
	writing sync.Mutex
	// forbidden is the error of a write for which the controller lacks a permission.
	forbidden error
	// after is the delay until the next pass, 0 if only news starts one.
	after time.Duration
	// ends is the time after which no further write starts. Writes in flight have their own timeouts. The zero time means never.
	ends time.Time
}

func (p *pass) over() bool { return !p.ends.IsZero() && p.store.Clock.Now().After(p.ends) }

func (p *pass) requeue(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// pod returns the pod of the world with this name, or nil.
func (p *pass) pod(name string) *decision.Pod {
	i, there := slices.BinarySearchFunc(p.world.Pods, name, func(q decision.Pod, name string) int { return strings.Compare(q.Name, name) })
	if !there {
		return nil
	}
	return &p.world.Pods[i]
}

func (p *pass) meta(name string) *podMeta {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.metas[name]
}
