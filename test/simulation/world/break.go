package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// errBroken is how the program of a broken revision ends.
var errBroken = errors.New("the program is broken")

// breaks says after how long the program ends by itself under an id, and whether its whole process dies with it.
func (p *Process) breaks(id identity.Identity) (after time.Duration, dies, broken bool) {
	v := p.w.Server.Get(object.Pods, p.Pod)
	if v == nil || !p.w.Broken[MadeFrom(v)] {
		return 0, false, false
	}
	d := p.w.Dice("break", p.ID, strconv.FormatInt(id.Token, 10))
	return d.Tail(3 * time.Second), d.Chance(0.3), true
}

// untilBroken blocks until the program ends by itself. It returns false if it was told to stop before, or does not break.
func (p *Process) untilBroken(ctx context.Context, id identity.Identity) bool {
	var after time.Duration
	var dies, broken bool
	p.w.Alone(func() { after, dies, broken = p.breaks(id) })
	if !broken {
		return false
	}
	if !pause(ctx.Done(), after) {
		return false
	}
	p.Thawed()
	p.w.Alone(func() { //nolint:contextcheck // the world may start another process after it
		if p.Dead {
			return
		}
		p.w.Note("break", p.ID)
		if dies {
			p.w.Kill(p)
			return
		}
		p.stop()
	})
	return true
}

// breakDown kills a process of a broken revision soon after its work began.
func (p *Process) breakDown(id identity.Identity) {
	if after, _, broken := p.breaks(id); broken {
		p.w.After(after, func() {
			if p.Runs() {
				p.w.Kill(p)
			}
		})
	}
}
