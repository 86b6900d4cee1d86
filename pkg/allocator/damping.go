package allocator

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// lasting is how long a restored map has to stand for the restore to have lasted.
	lasting = time.Minute
	// minDamping is the wait after the first restore that did not last. It doubles each time, up to maxDamping.
	minDamping = 100 * time.Millisecond
	maxDamping = 30 * time.Second
)

// damper slows restores down that somebody else undoes. All who have a slot hear of the same restores, whoever made
// them, so they back off together, and with window() few of them write at the end of the wait. The zero value is ready.
type damper struct {
	heard    int       // restores by anybody, as counted by the owner's stream
	restored time.Time // when the last one was heard of
	stands   bool      // it has not been undone yet
	times    int       // how many in a row were undone before they had lasted, or were in vain
}

// note takes in how many restores were heard of until now, and whether the map is intact. undone says that it is not, and
// that it was restored since that was said last: the wait for the next restore begins again.
func (d *damper) note(restores int, intact bool, now time.Time) (undone bool) {
	if restores != d.heard {
		d.heard = restores
		d.restore(now)
	}
	if intact || !d.stands {
		return false
	}
	d.stands = false
	if now.Sub(d.restored) < lasting {
		d.times++
	} else {
		d.times = 0
	}
	return true
}

// restore takes in a restore of this process's own, which the stream may not tell: where managedFields were cleared it
// cannot know one.
func (d *damper) restore(now time.Time) { d.restored, d.stands = now, true }

// vain takes in a restore of this process's own after which the map is still not what it has to be for this process, so that another one at
// once would come to the same.
func (d *damper) vain(now time.Time) { d.restored, d.stands, d.times = now, false, d.times+1 }

// wait returns how long the map is left as it is.
func (d *damper) wait() time.Duration {
	if d.times == 0 {
		return 0
	}
	return min(minDamping<<min(d.times-1, 16), maxDamping)
}

// damp takes in a restore of this process's own that left the map like this. If it is untracked, and the token comes from a clock far ahead, the
// next restore would be written again and change nothing. A clean map is written again only when there is something to change: when another
// pod lets go of this slot, for one.
func (h *holding) damp(restored store.Owner) {
	if !restored.Clean() && !h.intact(restored) {
		h.damping.vain(h.clock.Now())
		return
	}
	h.damping.restore(h.clock.Now())
}
