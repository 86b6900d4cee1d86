package faults

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Outage has the API server be away for a while, for everybody: it refuses connections, says nothing on them, carries requests out and says nothing,
// is slow, or does not accept tokens.
func Outage(w *world.World, long time.Duration, d *dice.Dice) {
	how := d.Below(5)
	w.Step("outage", []string{"refused", "silent", "half-open", "slow", "unauthorized"}[how], long.String())
	switch how {
	case 0:
		serverDown(w, Fault{Lasts: long}, d)
	case 1:
		w.Disturb(long, func(n *world.Network) { n.Mute = true })
	case 2:
		w.Disturb(long, func(n *world.Network) { n.Swallows = true })
	case 3:
		back := d.Chance(0.5)
		w.Disturb(long, func(n *world.Network) {
			n.Stall = world.Stall{Chance: 1, Verb: server.VerbUpdate, Owner: true, Answer: back, Longest: w.Profile.SurvivesSlow()}
		})
	default:
		w.Unauthorized = true
		w.After(long, func() { w.Unauthorized = false })
	}
}
