package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// memory recognizes the newest clean map that this process has seen of each Deployment. The server may forget that
// idalloc wrote it (Owner.Ancient).
//
// A map with the same seal in the same generation is the same map. Every write to the assignment changes annotations, so
// it raises a Deployment's generation. If the generation is the same, there was no such write, and if the seal fits, the
// content is the same. So idalloc was the last writer, whatever the server says. The generation of the other kinds does
// not change with annotations, so memory does not help there.
type memory struct {
	mu    sync.Mutex
	clean map[Ref]moment
}

type moment struct {
	uid        types.UID
	generation int64
	seal       string
	// partitions is the seal of the owners of partitions, empty if they were not clean.
	partitions string
}

// slots returns what tells one map of slots from another.
func (m moment) slots() moment { m.partitions = ""; return m }

// vouch notes a clean map. If it recognizes a map that is not clean, it makes the map clean.
func (m *memory) vouch(o *Owner) {
	if !kinds[o.Kind].versioned || (!o.Clean() && !o.Ancient) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := momentOf(*o), m.clean[o.Ref]
	switch {
	case !o.Clean():
		if now.slots() != known.slots() {
			return
		}
		o.Trust = assignment.Clean
		if now.partitions != "" && now.partitions == known.partitions {
			o.PartitionTrust = assignment.Clean
		}
	case now.uid != known.uid || now.generation >= known.generation:
		if o.PartitionTrust != assignment.Clean {
			now.partitions = ""
		}
		m.note(o.Ref, now)
	}
}

// wrote notes the owner that the server returned for a write of this process, and makes its map clean. The server may
// have forgotten the writer already.
func (m *memory) wrote(o *Owner) {
	if !kinds[o.Kind].versioned || !o.Ancient {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(o.Ref, momentOf(*o))
	o.Trust = assignment.Clean
	if o.Record.Partitions.Sealed { // it was written anew with the map
		o.PartitionTrust = assignment.Clean
	}
}

func (m *memory) note(ref Ref, now moment) {
	if m.clean == nil {
		m.clean = map[Ref]moment{}
	}
	m.clean[ref] = now
}

func momentOf(o Owner) moment {
	return moment{o.UID, o.Generation, o.Annotations[assignment.SealKey], o.Annotations[assignment.PartitionSealKey]}
}
