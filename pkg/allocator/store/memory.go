package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// memory is the newest clean map that this process has seen of each Deployment, as far as it takes to know it again.
//
// The same seal in the same generation is the same map: every W1 changes annotations and so raises a Deployment's generation,
// so there was none in between, and the seal fits what it seals. So it is what idalloc wrote last, whoever the server thinks it
// was. The other kinds' generation says nothing of annotations.
type memory struct {
	mu    sync.Mutex
	clean map[Ref]moment
}

type moment struct {
	uid        types.UID
	generation int64
	seal       string
}

// vouch notes a clean map, and has one that it knows again count as clean.
func (m *memory) vouch(o *Owner) {
	if !kinds[o.Kind].versioned || (!o.Clean() && !o.Ancient) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := momentOf(*o), m.clean[o.Ref]
	switch {
	case !o.Clean():
		if now == known {
			o.Trust = assignment.Clean
		}
	case now.uid != known.uid || now.generation >= known.generation:
		m.note(o.Ref, now)
	}
}

// wrote notes the answer to a W1 of this process, and has it count as clean: the server may have forgotten already who wrote it.
func (m *memory) wrote(o *Owner) {
	if !kinds[o.Kind].versioned || !o.Ancient {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(o.Ref, momentOf(*o))
	o.Trust = assignment.Clean
}

func (m *memory) note(ref Ref, now moment) {
	if m.clean == nil {
		m.clean = map[Ref]moment{}
	}
	m.clean[ref] = now
}

func momentOf(o Owner) moment {
	return moment{o.UID, o.Generation, o.Annotations[assignment.SealKey]}
}
