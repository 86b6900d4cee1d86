package faults

import (
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// kind is a kind of fault: its families, and what it does.
type kind struct {
	name     string
	families []string
	lasts    time.Duration // at most
	inject   func(w *world.World, f Fault, d *dice.Dice)
	// excuses says that pods may have to move for it.
	excuses bool
	only    func(p profile.Profile) bool
}

// Families of faults, selectable by name beside each fault's own.
const (
	RandomLoss         = "random-loss"
	RandomKillMinor    = "random-kill-minor"
	RandomKillMajor    = "random-kill-major"
	RandomKillFixed    = "random-kill-fixed"
	RandomSuspendMinor = "random-suspend-minor"
	RandomSuspendMajor = "random-suspend-major"
	RandomSuspendFixed = "random-suspend-fixed"
	Foreign            = "foreign"
	Receipts           = "receipts"
	Access             = "access"
	Life               = "life"
	Force              = "force"
	Aimed              = "aimed"
	Steps              = "steps"
)

// holdUps is the fault that holds any request of any process up.
const holdUps = "hold-ups"

func onlyDeployment(p profile.Profile) bool { return p.Resource == object.Deployments }
func notStrict(p profile.Profile) bool      { return p.FenceAfter == 0 }
func strict(p profile.Profile) bool         { return p.FenceAfter > 0 }

// catalogue lists all that can go wrong.
func catalogue() []kind {
	loss := []string{RandomLoss}
	return []kind{
		{name: "loss", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.LostRequest = d.Float() * 0.5 })},
		{name: "lost-responses", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.LostResponse = d.Float() * 0.6 })},
		{name: "duplicates", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Duplicate = d.Float() })},
		{name: "late-requests", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Late = d.Float() * 0.6 })},
		{name: "server-errors", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Failed = d.Float() * 0.7 })},
		{name: "foreign-404", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Astray = d.Float() * 0.7 })},
		{name: "latency", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Slower = 1 + d.Float()*100 })},
		{name: "stalls", families: loss, lasts: 3 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) {
			n.Stall = world.Stall{
				Chance: 0.3 + 0.7*d.Float(), Verb: dice.Pick(d, []string{"get", "list", server.VerbPatch, server.VerbPatch}), Owner: d.Chance(0.5), Answer: d.Chance(0.4),
			}
		})},
		{name: holdUps, families: []string{Steps}, lasts: 3 * time.Minute, inject: windowed(drawHoldUp)},
		{name: "silent-watches", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Silent = d.Float() })},
		{name: "closed-watches", families: loss, inject: func(w *world.World, _ Fault, d *dice.Dice) { endWatches(w, d, false) }},
		{name: "expired-watches", families: loss, inject: func(w *world.World, _ Fault, d *dice.Dice) { endWatches(w, d, true) }},
		{name: "server-down", families: loss, lasts: time.Minute, inject: serverDown},
		{name: "partition", families: loss, lasts: 3 * time.Minute, inject: partition},

		{name: "kill-minor", families: []string{RandomKillMinor}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killSome(w, d, false) }},
		{name: "kill-writers", families: []string{RandomKillMinor}, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.KillWriter = d.Float() * 0.5 })},
		{name: "kill-major", families: []string{RandomKillMajor}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killSome(w, d, true) }},
		{name: "kill-fixed", families: []string{RandomKillFixed}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killFirst(w, d) }},
		{name: "node-crash", families: []string{RandomKillMajor}, lasts: 2 * time.Minute, inject: nodeCrash},
		{name: "suspend-minor", families: []string{RandomSuspendMinor}, lasts: 2 * time.Minute, inject: func(w *world.World, f Fault, d *dice.Dice) { suspendSome(w, f, d, false) }},
		{name: "suspend-major", families: []string{RandomSuspendMajor}, lasts: 2 * time.Minute, inject: func(w *world.World, f Fault, d *dice.Dice) { suspendSome(w, f, d, true) }},
		{name: "suspend-fixed", families: []string{RandomSuspendFixed}, lasts: 2 * time.Minute, inject: suspendFirst},
		{name: "suspend-node", families: []string{RandomSuspendMajor}, lasts: 3 * time.Minute, inject: suspendNode},

		{name: "force-delete", families: []string{Force}, excuses: true, inject: forceDelete},
		{name: "replace-pod", families: []string{Force}, excuses: true, inject: replacePod},
		{name: "delete-node", families: []string{Force}, excuses: true, lasts: 2 * time.Minute, inject: deleteNode},
		{name: "declare-failed", families: []string{Force}, excuses: true, lasts: 2 * time.Minute, inject: declareFailed},
		{name: "kubelet-down", families: []string{Force}, lasts: 3 * time.Minute, inject: kubeletDown},

		{name: "relabel", families: []string{Foreign}, excuses: true, inject: relabel},
		{name: "wipe", families: []string{Foreign}, excuses: true, inject: foreignWrite(wipe)},
		{name: "edit", families: []string{Foreign}, excuses: true, inject: foreignWrite(edit)},
		{name: "corrupt", families: []string{Foreign}, excuses: true, inject: foreignWrite(corrupt)},
		{name: "roll-back-annotations", families: []string{Foreign}, excuses: true, inject: oldAnnotations},
		{name: "meddle", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Meddle = d.Float() * 0.3 })},
		{name: "clear-managed-fields", families: []string{Foreign}, excuses: true, only: notStrict, inject: clearFields},
		{name: "apply", families: []string{Foreign}, excuses: true, inject: func(w *world.World, _ Fault, _ *dice.Dice) { applyOwner(w) }},
		{name: "many-managers", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: manyManagers},
		{name: "recreate-owner", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: recreateOwner},
		{name: "hide", families: []string{Receipts}, excuses: true, inject: hide},
		{name: "remove-receipt", families: []string{Receipts}, excuses: true, inject: removeReceipt},
		{name: "corrupt-receipt", families: []string{Receipts}, excuses: true, inject: corruptReceipt},

		{name: "rbac", families: []string{Access}, excuses: true, lasts: time.Minute, inject: takeRBAC},
		{name: "quota", families: []string{Access}, lasts: time.Minute, inject: takeQuota},
		{name: "admission", families: []string{Access}, lasts: time.Minute, inject: refuseAdmission},

		{name: "scale", families: []string{Life}, excuses: true, inject: scaleOwner},
		{name: "rollout", families: []string{Life}, excuses: true, only: profile.Profile.Rolls, inject: rollout},
		{name: "undo", families: []string{Life, Foreign}, excuses: true, only: onlyDeployment, inject: undo},
		{name: "delete-pod", families: []string{Life}, inject: deleteSome},
		{name: "broken-rollout", families: []string{Life}, excuses: true, only: profile.Profile.Rolls, inject: brokenRollout},
		{name: "never-start", families: []string{Life}, excuses: true, lasts: 3 * time.Minute, inject: neverStart},
		{name: "evict", families: []string{Life}, inject: evictSome},
		{name: "sweep", families: []string{Life}, inject: collectSlots},

		{name: "suspend-taker", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: suspendTaker},
		{name: "crossed-writes", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: crossWrites},
		{name: "half-give", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: halfGive},
		{name: "late-give", families: []string{Aimed}, excuses: true, lasts: 2 * time.Minute, only: profile.Profile.Rolls, inject: lateGive},
		{name: "old-state", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: bringBackState},
		{name: "late-contact", families: []string{Aimed, Force}, excuses: true, lasts: 2 * time.Minute, only: strict, inject: lateContact},
	}
}
