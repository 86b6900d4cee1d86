package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
	inject   func(w *world, f Fault, d *dice)
	// excuses says that pods may have to move for it.
	excuses bool
	only    func(p profile) bool
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
)

func onlyDeployment(p profile) bool { return p.resource == deployments }
func rolls(p profile) bool          { return p.resource == deployments || p.resource == statefulSets }
func notStrict(p profile) bool      { return p.fenceAfter == 0 }
func strict(p profile) bool         { return p.fenceAfter > 0 }

// faultKinds lists all that can go wrong.
func faultKinds() []faultKind {
	loss := []string{RandomLoss}
	return []faultKind{
		{name: "loss", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.lostRequest = d.float() * 0.5 })},
		{name: "lost-responses", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.lostResponse = d.float() * 0.6 })},
		{name: "duplicates", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.duplicate = d.float() })},
		{name: "late-requests", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.late = d.float() * 0.6 })},
		{name: "server-errors", families: loss, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.failed = d.float() * 0.7 })},
		{name: "latency", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice) { n.slower = 1 + d.float()*100 })},
		{name: "stalls", families: loss, lasts: 3 * time.Minute, inject: windowed(func(n *network, d *dice) {
			n.stall = stall{
				chance: 0.3 + 0.7*d.float(), verb: pick(d, []string{"get", "list", verbPatch, verbPatch}), owner: d.chance(0.5), answer: d.chance(0.4),
			}
		})},
		{name: "silent-watches", families: loss, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice) { n.silent = d.float() })},
		{name: "closed-watches", families: loss, inject: func(w *world, _ Fault, d *dice) { w.endWatches(d, false) }},
		{name: "expired-watches", families: loss, inject: func(w *world, _ Fault, d *dice) { w.endWatches(d, true) }},
		{name: "server-down", families: loss, lasts: time.Minute, inject: serverDown},
		{name: "partition", families: loss, lasts: 3 * time.Minute, inject: partition},

		{name: "kill-minor", families: []string{RandomKillMinor}, inject: func(w *world, _ Fault, d *dice) { killSome(w, d, false) }},
		{name: "kill-writers", families: []string{RandomKillMinor}, lasts: 2 * time.Minute, inject: windowed(func(n *network, d *dice) { n.killWriter = d.float() * 0.5 })},
		{name: "kill-major", families: []string{RandomKillMajor}, inject: func(w *world, _ Fault, d *dice) { killSome(w, d, true) }},
		{name: "kill-fixed", families: []string{RandomKillFixed}, inject: func(w *world, _ Fault, d *dice) { killFirst(w, d) }},
		{name: "node-crash", families: []string{RandomKillMajor}, lasts: 2 * time.Minute, inject: nodeCrash},
		{name: "suspend-minor", families: []string{RandomSuspendMinor}, lasts: 2 * time.Minute, inject: func(w *world, f Fault, d *dice) { suspendSome(w, f, d, false) }},
		{name: "suspend-major", families: []string{RandomSuspendMajor}, lasts: 2 * time.Minute, inject: func(w *world, f Fault, d *dice) { suspendSome(w, f, d, true) }},
		{name: "suspend-fixed", families: []string{RandomSuspendFixed}, lasts: 2 * time.Minute, inject: suspendFirst},
		{name: "suspend-node", families: []string{RandomSuspendMajor}, lasts: 3 * time.Minute, inject: suspendNode},

		{name: "force-delete", families: []string{Force}, excuses: true, inject: forceDelete},
		{name: "delete-node", families: []string{Force}, excuses: true, lasts: 2 * time.Minute, inject: deleteNode},
		{name: "kubelet-down", families: []string{Force}, lasts: 3 * time.Minute, inject: kubeletDown},

		{name: "relabel", families: []string{Foreign}, excuses: true, inject: relabel},
		{name: "wipe", families: []string{Foreign}, excuses: true, inject: foreignWrite(wipe)},
		{name: "edit", families: []string{Foreign}, excuses: true, inject: foreignWrite(edit)},
		{name: "corrupt", families: []string{Foreign}, excuses: true, inject: foreignWrite(corrupt)},
		{name: "roll-back-annotations", families: []string{Foreign}, excuses: true, inject: oldAnnotations},
		{name: "meddle", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: windowed(func(n *network, d *dice) { n.meddle = d.float() * 0.3 })},
		{name: "clear-managed-fields", families: []string{Foreign}, excuses: true, only: notStrict, inject: clearFields},
		{name: "apply", families: []string{Foreign}, excuses: true, inject: func(w *world, _ Fault, _ *dice) { w.applyOwner() }},
		{name: "recreate-owner", families: []string{Foreign}, excuses: true, lasts: time.Minute, inject: recreateOwner},
		{name: "hide", families: []string{Receipts}, excuses: true, inject: hide},
		{name: "remove-receipt", families: []string{Receipts}, excuses: true, inject: removeReceipt},
		{name: "corrupt-receipt", families: []string{Receipts}, excuses: true, inject: corruptReceipt},

		{name: "rbac", families: []string{Access}, excuses: true, lasts: time.Minute, inject: takeRBAC},
		{name: "quota", families: []string{Access}, lasts: time.Minute, inject: takeQuota},
		{name: "admission", families: []string{Access}, lasts: time.Minute, inject: refuseAdmission},

		{name: "scale", families: []string{Life}, excuses: true, inject: scaleOwner},
		{name: "rollout", families: []string{Life}, excuses: true, only: rolls, inject: rollout},
		{name: "undo", families: []string{Life, Foreign}, excuses: true, only: onlyDeployment, inject: undo},
		{name: "delete-pod", families: []string{Life}, inject: deleteSome},
		{name: "evict", families: []string{Life}, inject: evictSome},

		{name: "suspend-taker", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: suspendTaker},
		{name: "crossed-writes", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: crossWrites},
		{name: "half-give", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: halfGive},
		{name: "late-give", families: []string{Aimed}, excuses: true, lasts: 2 * time.Minute, only: rolls, inject: lateGive},
		{name: "old-state", families: []string{Aimed, Foreign}, excuses: true, lasts: 2 * time.Minute, inject: bringBackState},
		{name: "late-contact", families: []string{Aimed, Force}, excuses: true, lasts: 2 * time.Minute, only: strict, inject: lateContact},
	}
}

// drawFaults draws a list of faults. names selects kinds or families; empty is all. Damage to receipts and to
// the map never meet in one history: who changes both at once is on his own (docs/protocol.md, A4).
func drawFaults(seed uint64, p profile, names []string) []Fault {
	d := derive(seed, "faults")
	without := Receipts
	if d.chance(0.3) {
		without = Foreign
	}
	var kinds []faultKind
	for _, k := range faultKinds() {
		// What waits for one moment is rare, unless it is asked for.
		rare := len(names) == 0 && slices.Contains(k.families, Aimed) && d.chance(0.6)
		if (k.only == nil || k.only(p)) && !slices.Contains(k.families, without) && selected(k, names) && !rare {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	// A history has few kinds of faults, and some of them often: that is how they meet.
	kinds = sample(d, kinds, d.between(1, 6))
	out := make([]Fault, 0, 16)
	n := d.between(1, 14)
	if d.chance(0.25) {
		n = d.between(15, 40)
	}
	for range n {
		k := pick(d, kinds)
		f := Fault{Name: k.name, At: d.span(0, p.chaos), Draw: d.next()}
		if k.lasts > 0 {
			f.Lasts = d.span(time.Millisecond, k.lasts)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

func selected(k faultKind, names []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == k.name || slices.ContainsFunc(k.families, func(f string) bool { return f == n || strings.HasPrefix(f, n+"-") })
	})
}

func sample[T any](d *dice, from []T, n int) []T {
	from = slices.Clone(from)
	for i := range from {
		j := i + d.below(len(from)-i)
		from[i], from[j] = from[j], from[i]
	}
	return from[:min(n, len(from))]
}

// schedule has the faults happen.
func (w *world) schedule(faults []Fault) {
	w.judge.progress.run()
	kinds := map[string]faultKind{}
	for _, k := range faultKinds() {
		kinds[k.name] = k
	}
	for _, f := range faults {
		k := kinds[f.Name]
		w.after(f.At, func() {
			if w.quiet {
				return
			}
			w.step("fault", f.String())
			w.faults[f.Name]++
			if k.excuses {
				w.judge.excuse()
			}
			if slices.Contains(k.families, RandomLoss) {
				w.judge.progress.troubled = w.now()
			}
			w.judge.damaged = w.judge.damaged || slices.Contains(k.families, Foreign) || slices.Contains(k.families, Receipts)
			k.inject(w, f, &dice{state: f.Draw})
		})
	}
}

// heal ends all faults, and does what an operator has to do by hand.
func (w *world) heal() {
	w.quiet = true
	w.step("heal")
	w.net = network{slower: 1}
	w.server.down, w.server.quota, w.server.admission = false, false, false
	clear(w.server.refusals)
	for _, n := range w.nodes {
		n.down, n.mute = false, false
		w.resumeNode(n)
		w.join(n, true)
	}
	w.disarm()
	for _, p := range w.running() {
		p.goOn()
		w.reconnect(p)
	}
	if w.owner() == nil {
		w.createOwner(w.profile.count, 1)
	}
	w.applyOwner() // starts tracking again, if somebody cleared managedFields
	for _, v := range w.server.objects(pods) {
		if labels(v.object)[appLabel] != ownerName {
			w.server.deletePod(v.name, w.profile.grace) // it was debugged, and holds a slot
		}
	}
	w.judge.excuse()
}

// tell lists how often each fault happened.
func tell(faults map[string]int) string {
	var b strings.Builder
	for _, name := range sortedKeys(faults) {
		fmt.Fprintf(&b, "  %-24s %d\n", name, faults[name])
	}
	return b.String()
}
