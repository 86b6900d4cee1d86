package decide

import (
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// proof is a division that is better than the present one, and since when it has been. One that suits only the noise of a moment is not
// better at the next one. Each moment has such a division, so it does not do that there is one all the time. Its zero value is ready.
type proof struct {
	target      placement.Owners
	since, seen time.Time
}

// lasts returns for how long one division has been better at each moment. This target begins if there is none, or none was looked for lately.
func (p *proof) lasts(target placement.Owners, better func(placement.Owners) bool, lately time.Duration, now time.Time) time.Duration {
	if p.target == nil || now.Sub(p.seen) > lately || !better(p.target) {
		p.target, p.since = target, now
	}
	p.seen = now
	return now.Sub(p.since)
}
