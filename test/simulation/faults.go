package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Fault is one thing that goes wrong. A list of them and a seed are a history.
type Fault struct {
	Name string        `json:"name"`
	At   time.Duration `json:"at"`
	// Lasts is for how long, where it has an end.
	Lasts time.Duration `json:"lasts"`
	// Draw seeds what the fault still has to choose.
	Draw uint64 `json:"draw"`
}

// String returns the fault for people: name@from+length.
func (f Fault) String() string {
	s := f.Name + "@" + f.At.Round(time.Millisecond).String()
	if f.Lasts > 0 {
		s += "+" + f.Lasts.Round(time.Millisecond).String()
	}
	return s
}

// faultKind is a kind of fault: its families, and what it does.
type faultKind struct {
	name     string
	families []string
	lasts    time.Duration // at most
	inject   func(w *world, f Fault, d *dice.Dice)
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

// faultKinds lists all that can go wrong.
func faultKinds() []faultKind {
	loss := []string{RandomLoss}
	return []faultKind{
		{name: "loss", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.lostRequest = d.Float() * 0.5 })},
		{name: "lost-responses", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.lostResponse = d.Float() * 0.6 })},
		{name: "duplicates", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.duplicate = d.Float() })},
		{name: "late-requests", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.late = d.Float() * 0.6 })},
		{name: "server-errors", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.failed = d.Float() * 0.7 })},
		{name: "foreign-404", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.astray = d.Float() * 0.7 })},
		{name: "latency", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.slower = 1 + d.Float()*100 })},
		{name: "stalls", families: loss, lasts: 3 * time.Minute, inject: windowed(func(n *network, d *dice.Dice) {
			n.stall = stall{
				chance: 0.3 + 0.7*d.Float(), verb: dice.Pick(d, []string{"get", "list", server.VerbPatch, server.VerbPatch}), owner: d.Chance(0.5), answer: d.Chance(0.4),
			}
		})},
		{name: holdUps, families: []string{Steps}, lasts: 3 * time.Minute, inject: windowed(drawHoldUp)},
		{name: "silent-watches", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.silent = d.Float() })},
		{name: "closed-watches", families: loss, inject: func(w *world, _ Fault, d *dice.Dice) { w.endWatches(d, false) }},
		{name: "expired-watches", families: loss, inject: func(w *world, _ Fault, d *dice.Dice) { w.endWatches(d, true) }},
		{name: "server-down", families: loss, lasts: time.Minute, inject: serverDown},
		{name: "partition", families: loss, lasts: 3 * time.Minute, inject: partition},

		{name: "kill-minor", families: []string{RandomKillMinor}, inject: func(w *world, _ Fault, d *dice.Dice) { killSome(w, d, false) }},
		{name: "kill-writers", families: []string{RandomKillMinor}, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.killWriter = d.Float() * 0.5 })},
		{name: "kill-major", families: []string{RandomKillMajor}, inject: func(w *world, _ Fault, d *dice.Dice) { killSome(w, d, true) }},
		{name: "kill-fixed", families: []string{RandomKillFixed}, inject: func(w *world, _ Fault, d *dice.Dice) { killFirst(w, d) }},
		{name: "node-crash", families: []string{RandomKillMajor}, lasts: 2 * time.Minute, inject: nodeCrash},
		{name: "suspend-minor", families: []string{RandomSuspendMinor}, lasts: 2 * time.Minute, inject: func(w *world, f Fault, d *dice.Dice) { suspendSome(w, f, d, false) }},
		{name: "suspend-major", families: []string{RandomSuspendMajor}, lasts: 2 * time.Minute, inject: func(w *world, f Fault, d *dice.Dice) { suspendSome(w, f, d, true) }},
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
		{name: "meddle", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: windowed(func(n *network, d *dice.Dice) { n.meddle = d.Float() * 0.3 })},
		{name: "clear-managed-fields", families: []string{Foreign}, excuses: true, only: notStrict, inject: clearFields},
		{name: "apply", families: []string{Foreign}, excuses: true, inject: func(w *world, _ Fault, _ *dice.Dice) { w.applyOwner() }},
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

// drawFaults draws a list of faults. names selects kinds or families; empty is all. Damage to receipts and to
// the map never meet in one history: who changes both at once is on his own (docs/protocol.md, A4).
//
// Each history has a subset of the kinds, and each kind a rate of its own: what keeps others from happening is missing in some
// histories, and what has to meet is frequent in some (Groce et al., Swarm testing, ISSTA 2012).
func drawFaults(seed uint64, p profile.Profile, names []string) []Fault {
	kinds, rates, d := drawKinds(seed, p, names)
	if len(kinds) == 0 {
		return nil
	}
	n := d.Between(1, 14)
	if d.Chance(0.25) || p.Crowded {
		n = d.Between(15, 40)
	}
	n = max(n, min(len(kinds)*d.Between(1, 3), 40)) // so that those meet which a history has
	out := make([]Fault, 0, n+1)
	if p.Crowded && len(names) == 0 {
		out = append(out, Fault{Name: holdUps, At: 1, Lasts: p.Chaos, Draw: d.Next()})
	}
	for range n {
		k := kinds[dice.Weighted(d, rates)]
		f := Fault{Name: k.name, At: d.Span(0, p.Chaos), Draw: d.Next()}
		if k.lasts > 0 {
			f.Lasts = d.Span(time.Millisecond, k.lasts)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// drawKinds draws which kinds of faults a history has, and how often each happens beside the others.
func drawKinds(seed uint64, p profile.Profile, names []string) (kinds []faultKind, rates []float64, d *dice.Dice) {
	d = dice.Derive(seed, "faults")
	without := Receipts
	if d.Chance(0.3) {
		without = Foreign
	}
	for _, k := range faultKinds() {
		// What waits for one moment is rare, unless it is asked for.
		rare := len(names) == 0 && slices.Contains(k.families, Aimed) && d.Chance(0.6)
		if (k.only == nil || k.only(p)) && !slices.Contains(k.families, without) && selected(k, names) && !rare {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil, nil, d
	}
	if p.Crowded && len(names) == 0 && d.Chance(0.5) { // who writes, and who comes and goes
		kinds = slices.DeleteFunc(kinds, func(k faultKind) bool {
			return !slices.Contains(k.families, Foreign) && !slices.Contains(k.families, Life) && !slices.Contains(k.families, Receipts)
		})
	}
	kinds = dice.Sample(d, kinds, dice.Pick(d, []int{d.Between(1, 3), d.Between(3, 8), d.Between(6, 14), len(kinds) / 2}))
	// What holds requests up makes more of all others.
	if i := slices.IndexFunc(faultKinds(), func(k faultKind) bool { return k.name == holdUps }); len(names) == 0 && d.Chance(0.6) {
		kinds = append(slices.DeleteFunc(kinds, func(k faultKind) bool { return k.name == holdUps }), faultKinds()[i])
	}
	for _, k := range kinds {
		rate := float64(d.Tail(time.Second))
		if k.name == holdUps {
			rate *= 3
		}
		rates = append(rates, rate)
	}
	return kinds, rates, d
}

func selected(k faultKind, names []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == k.name || slices.ContainsFunc(k.families, func(f string) bool { return f == n || strings.HasPrefix(f, n+"-") })
	})
}

// schedule has the faults happen. others are what else may happen while somebody is held up.
func (w *world) schedule(faults []Fault, others []faultKind) {
	w.judge.progress.run()
	w.others = slices.DeleteFunc(others, func(k faultKind) bool {
		return slices.Contains(k.families, Aimed) || slices.Contains(k.families, Steps)
	})
	kinds := map[string]faultKind{}
	for _, k := range faultKinds() {
		kinds[k.name] = k
	}
	for _, f := range faults {
		w.After(f.At, func() { w.inject(kinds[f.Name], f) })
	}
}

// inject has a fault happen now.
func (w *world) inject(k faultKind, f Fault) {
	if w.quiet {
		return
	}
	w.Step("fault", f.String())
	w.faults[f.Name]++
	if k.excuses {
		w.judge.excuse()
	}
	if slices.Contains(k.families, RandomLoss) || slices.Contains(k.families, Steps) {
		w.judge.progress.troubled = w.Now()
	}
	k.inject(w, f, dice.From(f.Draw))
}

// heal ends all faults that end by themselves.
func (w *world) heal() {
	w.quiet = true
	w.Step("heal")
	w.net = network{slower: 1}
	w.down, w.quota, w.server.Admission = false, false, false
	clear(w.server.Refusals)
	for _, n := range w.nodes {
		n.down, n.mute = false, false
		w.resumeNode(n)
		w.join(n, true)
	}
	w.disarm()
	w.release()
	w.startAll()
	for _, p := range w.running() {
		p.goOn()
		w.reconnect(p)
	}
}

// repair does what an operator has to do by hand.
func (w *world) repair() {
	w.Step("repair")
	if w.owner() == nil {
		w.createOwner(w.profile.Count, 1)
	}
	w.applyOwner() // starts tracking again, if somebody cleared managedFields
	for _, v := range w.server.Objects(object.Pods) {
		if !inWorkload(v.Object) {
			w.server.DeletePod(v.Name, w.profile.Grace) // it was debugged, and holds a slot
		}
	}
	w.judge.excuse()
}

// tell lists how often each fault happened.
func tell(faults map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(&b, "  %-24s %d\n", name, faults[name])
	}
	return b.String()
}
