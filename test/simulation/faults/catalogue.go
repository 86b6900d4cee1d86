package faults

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
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

// suits reports whether the fault can happen to such a workload.
func (k kind) suits(p profile.Profile) bool { return k.only == nil || k.only(p) }

// is reports whether the fault belongs to one of the families.
func (k kind) is(families ...string) bool {
	return slices.ContainsFunc(families, func(f string) bool { return slices.Contains(k.families, f) })
}

// Families of faults, selectable by name beside each fault's own.
const (
	randomLoss         = "random-loss"
	randomKillMinor    = "random-kill-minor"
	randomKillMajor    = "random-kill-major"
	randomKillFixed    = "random-kill-fixed"
	randomSuspendMinor = "random-suspend-minor"
	randomSuspendMajor = "random-suspend-major"
	randomSuspendFixed = "random-suspend-fixed"
	foreign            = "foreign"
	receipts           = "receipts"
	access             = "access"
	life               = "life"
	force              = "force"
	aimed              = "aimed"
	steps              = "steps"
)

// holdUps is the fault that holds any request of any process up.
const holdUps = "hold-ups"

func onlyDeployment(p profile.Profile) bool { return p.Resource == object.Deployments }
func strict(p profile.Profile) bool         { return p.FenceAfter > 0 }
func divides(p profile.Profile) bool        { return p.Partitions > 0 }
func agents(p profile.Profile) bool         { return p.Has(receipt.ByAgent) }

// repairs is the fault that is none: an operator does by hand what idalloc cannot.
const repairs = "repair"

// catalogue lists all that can go wrong.
func catalogue() []kind {
	loss := []string{randomLoss}
	return []kind{
		{name: "loss", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.LostRequest = d.Float() * 0.5 })},
		{name: "lost-responses", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.LostResponse = d.Float() * 0.6 })},
		{name: "duplicates", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Duplicate = d.Float() })},
		{name: "late-requests", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Late = d.Float() * 0.6 })},
		{name: "server-errors", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Failed = d.Float() * 0.7 })},
		{name: "repeats", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Repeats = d.Float() * 0.7 })},
		{name: "mute", families: loss, lasts: 40 * time.Second, inject: windowed(func(n *world.Network, _ *dice.Dice) { n.Mute = true })},
		{name: "unauthorized", families: []string{access}, lasts: time.Minute, inject: switched(func(w *world.World, on bool) { w.Unauthorized = on })},
		{name: "foreign-404", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Astray = d.Float() * 0.7 })},
		{name: "latency", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Slower = 1 + d.Float()*100 })},
		{name: "stalls", families: loss, lasts: 3 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) {
			n.Stall = world.Stall{
				Chance: 0.3 + 0.7*d.Float(), Verb: dice.Pick(d, []string{"get", "list", server.VerbPatch, server.VerbPatch}), Owner: d.Chance(0.5), Answer: d.Chance(0.4),
			}
		})},
		{name: holdUps, families: []string{steps}, lasts: 3 * time.Minute, inject: windowed(drawHoldUp)},
		{name: "silent-watches", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Silent = d.Float() })},
		{name: "closed-watches", families: loss, inject: func(w *world.World, _ Fault, d *dice.Dice) { endWatches(w, d, false) }},
		{name: "expired-watches", families: loss, inject: func(w *world.World, _ Fault, d *dice.Dice) { endWatches(w, d, true) }},
		{name: "server-down", families: loss, lasts: time.Minute, inject: serverDown},
		{name: "partition", families: loss, lasts: 3 * time.Minute, inject: partition},

		{name: "kill-minor", families: []string{randomKillMinor}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killSome(w, d, false) }},
		{name: "kill-writers", families: []string{randomKillMinor}, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.KillWriter = d.Float() * 0.5 })},
		{name: "kill-senders", families: []string{randomKillMinor}, lasts: 2 * time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.KillSender = d.Float() * 0.5 })},
		{name: "kill-major", families: []string{randomKillMajor}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killSome(w, d, true) }},
		{name: "kill-fixed", families: []string{randomKillFixed}, inject: func(w *world.World, _ Fault, d *dice.Dice) { killFirst(w, d) }},
		{name: "node-crash", families: []string{randomKillMajor}, lasts: 2 * time.Minute, inject: nodeCrash},
		{name: "suspend-minor", families: []string{randomSuspendMinor}, lasts: 2 * time.Minute, inject: func(w *world.World, f Fault, d *dice.Dice) { suspendSome(w, f, d, false) }},
		{name: "suspend-major", families: []string{randomSuspendMajor}, lasts: 2 * time.Minute, inject: func(w *world.World, f Fault, d *dice.Dice) { suspendSome(w, f, d, true) }},
		{name: "suspend-fixed", families: []string{randomSuspendFixed}, lasts: 2 * time.Minute, inject: suspendFirst},
		{name: "suspend-node", families: []string{randomSuspendMajor}, lasts: 3 * time.Minute, inject: suspendNode},

		{name: "force-delete", families: []string{force}, excuses: true, inject: toSomePod(func(w *world.World, v *server.Version, _ *dice.Dice) { w.Server.Remove(v) })},
		{name: "replace-pod", families: []string{force}, excuses: true, inject: toSomePod(replacePod)},
		{name: "delete-node", families: []string{force}, excuses: true, lasts: 2 * time.Minute, inject: deleteNode},
		{name: "lost-node", families: []string{force}, excuses: true, lasts: 4 * time.Minute, inject: lostNode},
		{name: "declare-failed", families: []string{force}, excuses: true, lasts: 2 * time.Minute, inject: declareFailed},
		{name: "kubelet-down", families: []string{force}, lasts: 3 * time.Minute, inject: kubeletDown},

		{name: "relabel", families: []string{foreign}, excuses: true, inject: toSomePod(func(w *world.World, v *server.Version, _ *dice.Dice) { w.Relabel(v.Name) })},
		{name: "wipe", families: []string{foreign}, excuses: true, inject: foreignWrite(wipe)},
		{name: "edit", families: []string{foreign}, excuses: true, inject: foreignWrite(edit)},
		{name: "corrupt", families: []string{foreign}, excuses: true, inject: foreignWrite(corrupt)},
		{name: "roll-back-annotations", families: []string{foreign}, excuses: true, inject: oldAnnotations},
		{name: "meddle", families: []string{foreign}, excuses: true, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Meddle = d.Float() * 0.3 })},
		{name: "recreate-owner", families: []string{foreign}, excuses: true, lasts: time.Minute, inject: recreateOwner},
		{name: "split-owner", families: []string{foreign, life}, excuses: true, lasts: 3 * time.Minute, only: onlyDeployment, inject: splitOwner},
		{name: "hide", families: []string{receipts}, excuses: true, lasts: time.Minute, inject: hide},
		{name: "remove-receipt", families: []string{receipts}, excuses: true, inject: toSomePod(removeReceipt)},
		{name: "corrupt-receipt", families: []string{receipts}, excuses: true, inject: toSomePod(corruptReceipt)},
		{name: "change-proposal", families: []string{receipts}, excuses: true, only: agents, inject: toSomePod(changeProposal)},

		{name: "rbac", families: []string{access}, excuses: true, lasts: time.Minute, inject: takeRBAC},
		{name: "quota", families: []string{access}, lasts: time.Minute, inject: switched(func(w *world.World, on bool) { w.Quota = on })},
		{name: "admission", families: []string{access}, lasts: time.Minute, inject: switched(func(w *world.World, on bool) { w.Server.Admission = on })},

		{name: "refused-pod", families: []string{access}, lasts: 2 * time.Minute, inject: refusePods},
		{name: "lag", families: loss, lasts: time.Minute, inject: windowed(func(n *world.Network, d *dice.Dice) { n.Behind = d.Span(time.Second, 6*time.Second) })},
		{name: "undone", families: []string{foreign}, excuses: true, lasts: 2 * time.Minute, inject: undoing},
		{name: "forge", families: []string{foreign}, inject: forge},
		{name: "one-number", families: []string{foreign, life}, excuses: true, lasts: 2 * time.Minute, only: onlyDeployment, inject: oneNumber},
		{name: "lose-lease", families: []string{receipts}, excuses: true, only: strict, inject: loseLease},
		{name: "change-leases", families: []string{receipts}, excuses: true, lasts: time.Minute, only: strict, inject: changeLeases},
		{name: "strip", families: []string{receipts}, excuses: true, lasts: time.Minute, inject: strip},

		{name: "scale", families: []string{life}, excuses: true, inject: scaleOwner},
		{name: "rollout", families: []string{life}, excuses: true, only: profile.Profile.Rolls, inject: rollout},
		{name: "undo", families: []string{life, foreign}, excuses: true, only: onlyDeployment, inject: undo},
		{name: "delete-pod", families: []string{life}, inject: toSomePod(deletePod)},
		{name: "broken-rollout", families: []string{life}, excuses: true, only: profile.Profile.Rolls, inject: brokenRollout},
		{name: "never-start", families: []string{life}, excuses: true, lasts: 6 * time.Minute, inject: neverStart},
		{name: "evict", families: []string{life}, inject: toSomePod(func(w *world.World, v *server.Version, _ *dice.Dice) { w.Evict(v.Name) })},
		{name: "sweep", families: []string{life}, inject: collectSlots},
		{name: repairs, families: []string{life}, excuses: true, inject: func(w *world.World, _ Fault, _ *dice.Dice) { operate(w) }},
		{name: "spend", families: []string{life}, inject: toSomePod(spend)},
		{name: "hang", families: []string{life}, lasts: 3 * time.Minute, only: divides, inject: hang},
		{name: "pause", families: []string{life}, lasts: 2 * time.Minute, only: divides, inject: pausePod},

		{name: "suspend-taker", families: []string{aimed, foreign}, excuses: true, lasts: 2 * time.Minute, inject: suspendTaker},
		{name: "crossed-takes", families: []string{aimed, foreign}, excuses: true, lasts: 2 * time.Minute, inject: crossTakes},
		{name: "half-give", families: []string{aimed}, excuses: true, lasts: 2 * time.Minute, inject: halfGive},
		{name: "late-lock", families: []string{aimed}, excuses: true, lasts: 2 * time.Minute, inject: lateLock},
		{name: "old-state", families: []string{aimed, foreign}, excuses: true, lasts: 2 * time.Minute, inject: bringBackState},
		{name: "late-contact", families: []string{aimed, force}, excuses: true, lasts: 2 * time.Minute, only: strict, inject: lateContact},
		{name: "spend-early", families: []string{aimed, life}, lasts: 2 * time.Minute, inject: spendEarly},
		{name: "spend-in-renewal", families: []string{aimed, life}, lasts: time.Minute, only: strict, inject: spendInRenewal},
		{name: "lock-and-end", families: []string{aimed}, excuses: true, lasts: 2 * time.Minute, inject: lockAndEnd},
		{name: "resume-late", families: []string{aimed, force}, excuses: true, lasts: 2 * time.Minute, only: strict, inject: resumeLate},
		{name: "late-loss", families: []string{aimed, force}, excuses: true, lasts: 2 * time.Minute, only: strict, inject: lateLoss},
	}
}
