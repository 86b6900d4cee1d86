package decide

import (
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// proof is a division that is better than the present one, and the time since when it has been. A division that only suits the noise of one moment is not
// better at the next. Every moment has some better division, so one division must stay better all the time. The zero value is ready to use.
type proof struct {
	target      placement.Owners
	since, seen time.Time
}

// lasts returns for how long one division has been better at each moment. It starts again with this target if there is no such division, or if none was checked
// lately.
func (p *proof) lasts(target placement.Owners, better func(placement.Owners) bool, lately time.Duration, now time.Time) time.Duration {
	if p.target == nil || now.Sub(p.seen) > lately || !better(p.target) {
		p.target, p.since = target, now
	}
	p.seen = now
	return now.Sub(p.since)
}
