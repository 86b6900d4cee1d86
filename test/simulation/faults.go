package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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
)

func onlyDeployment(p profile) bool { return p.resource == deployments }
func rolls(p profile) bool          { return p.resource == deployments || p.resource == statefulSets }
func notStrict(p profile) bool      { return p.fenceAfter == 0 }

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
		if (k.only == nil || k.only(p)) && !slices.Contains(k.families, without) && selected(k, names) {
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
			w.judge.damaged = w.judge.damaged || slices.Contains(k.families, Foreign) || slices.Contains(k.families, Receipts)
			k.inject(w, f, &dice{state: f.Draw})
		})
	}
}

// windowed changes the network for a while. Where two windows meet, the later one has it.
func windowed(change func(*network, *dice)) func(*world, Fault, *dice) {
	return func(w *world, f Fault, d *dice) {
		before := w.net
		change(&w.net, d)
		w.after(f.Lasts, func() {
			if !w.quiet {
				w.net = before
			}
		})
	}
}

func (w *world) endWatches(d *dice, expire bool) {
	for _, resource := range sortedKeys(w.server.watchers) {
		for _, st := range w.server.watchers[resource] {
			if d.chance(0.5) {
				continue
			}
			if expire {
				st.expire()
				continue
			}
			st.end(pick(d, []error{nil, errCut}))
		}
	}
	if expire {
		w.server.oldest = w.server.rv
	}
}

func serverDown(w *world, f Fault, _ *dice) {
	w.server.down = true
	for _, resource := range sortedKeys(w.server.watchers) {
		for _, st := range w.server.watchers[resource] {
			st.end(errCut)
		}
	}
	w.after(f.Lasts, func() { w.server.down = false })
}

func partition(w *world, f Fault, d *dice) {
	n := pick(d, w.nodes)
	n.cut = true
	breaks := d.chance(0.5)
	w.after(f.Lasts, func() { w.join(n, breaks) })
}

// join connects a node again. Its connections may have broken meanwhile.
func (w *world) join(n *node, breaks bool) {
	n.cut = false
	for _, p := range w.processes {
		if p.node != n {
			continue
		}
		if breaks {
			p.held = nil
			for _, resource := range sortedKeys(w.server.watchers) {
				for _, st := range slices.Clone(w.server.watchers[resource]) {
					if st.p == p {
						st.end(errCut)
					}
				}
			}
		}
		p.reach()
	}
	w.syncNode(n)
}

// some picks running processes: fewer than half, or more.
func some(w *world, d *dice, major bool) []*process {
	running := w.running()
	if len(running) == 0 {
		return nil
	}
	n := 1
	if major {
		n = d.between(len(running)/2+1, len(running))
	}
	return sample(d, running, n)
}

func (w *world) kill(p *process) {
	p.kill()
	w.kubeletSees(p.pod, p.uid)
}

func killSome(w *world, d *dice, major bool) {
	for _, p := range some(w, d, major) {
		w.kill(p)
	}
}

// killFirst kills whoever acts under id 0.
func killFirst(w *world, _ *dice) {
	if p := w.first(); p != nil {
		w.kill(p)
	}
}

func (w *world) first() *process {
	for _, p := range w.running() {
		if b := p.belief(); b != nil && b.ID == 0 {
			return p
		}
	}
	return nil
}

func nodeCrash(w *world, f Fault, d *dice) {
	n := pick(d, w.nodes)
	n.down = true
	for _, p := range w.running() {
		if p.node == n {
			p.kill()
		}
	}
	w.after(f.Lasts, func() {
		n.down = false
		w.syncNode(n)
	})
}

func (w *world) suspend(p *process, lasts time.Duration) {
	p.freeze()
	w.after(lasts, p.goOn)
}

func suspendSome(w *world, f Fault, d *dice, major bool) {
	for _, p := range some(w, d, major) {
		w.suspend(p, time.Duration(float64(f.Lasts)*(0.5+d.float()/2)))
	}
}

func suspendFirst(w *world, f Fault, _ *dice) {
	if p := w.first(); p != nil {
		w.suspend(p, f.Lasts)
	}
}

func suspendNode(w *world, f Fault, d *dice) {
	n := pick(d, w.nodes)
	n.frozen = true
	for _, p := range w.running() {
		if p.node == n {
			p.freeze()
		}
	}
	w.after(f.Lasts, func() { w.resumeNode(n) })
}

// kubeletDown: nobody starts or ends anything on a node, whose processes go on.
func kubeletDown(w *world, f Fault, d *dice) {
	n := pick(d, w.nodes)
	n.mute = true
	w.after(f.Lasts, func() {
		n.mute = false
		w.syncNode(n)
	})
}

func (w *world) resumeNode(n *node) {
	n.frozen = false
	for _, p := range w.processes {
		if p.node == n {
			p.goOn()
		}
	}
	w.syncNode(n)
}

// somePod picks a pod of the owner.
func (w *world) somePod(d *dice) *version {
	all := w.server.objects(pods)
	if len(all) == 0 {
		return nil
	}
	return pick(d, all)
}

func forceDelete(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.server.remove(v)
	}
}

// deleteNode removes a Node object while its machine is cut off; the pod garbage collector removes its pods.
func deleteNode(w *world, f Fault, d *dice) {
	n := pick(d, w.nodes)
	n.cut = true
	w.after(d.span(0, f.Lasts/2+1), func() {
		for _, v := range w.server.objects(pods) {
			if text(v.object, "spec", "nodeName") != n.name {
				continue
			}
			w.server.change(pods, v.name, writer{manager: manager, status: true}, func(o object) {
				status := need(o, "status")
				status["phase"] = failed
				status["conditions"] = []any{object{"type": "DisruptionTarget", "reason": "DeletionByPodGC", "status": "True"}}
			})
			w.forsake(v)
		}
		w.after(d.span(0, 5*time.Second), func() {
			for _, v := range w.server.objects(pods) {
				if text(v.object, "spec", "nodeName") == n.name && text(v.object, "status", "phase") == failed {
					w.server.remove(v)
				}
			}
		})
	})
	w.after(f.Lasts, func() { w.join(n, true) })
}

// forsake notes that a pod was declared dead while its process may run.
func (w *world) forsake(v *version) {
	if k := w.pods[podKey(v.name, uid(v.object))]; k != nil && !k.gone && k.process != nil && !k.process.ended && !k.process.dead {
		k.forced = true
	}
}

func relabel(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.relabels[v.name] = true
		w.server.change(pods, v.name, writer{manager: "kubectl-label"}, func(o object) {
			setText(o, "labels", appLabel, "debug")
			if d.chance(0.5) {
				setText(o, "labels", assignment.InstanceIDLabel, "")
			}
		})
	}
}

// ours are the annotation keys of the owner that idalloc keeps.
func ours() []string { return assignment.Keys(assignment.DefaultKey) }

func foreignWrite(how func(o object, d *dice)) func(*world, Fault, *dice) {
	return func(w *world, _ Fault, d *dice) {
		w.server.change(w.profile.resource, ownerName, writer{manager: "kubectl-edit"}, func(o object) { how(o, d) })
	}
}

// wipe removes one of our annotations, all of them, or all annotations.
func wipe(o object, d *dice) {
	switch d.below(3) {
	case 0:
		setText(o, "annotations", pick(d, ours()), "")
	case 1:
		for _, key := range ours() {
			setText(o, "annotations", key, "")
		}
	default:
		delete(need(o, metadata), "annotations")
	}
}

// edit gives slots to other pods, as somebody would who thinks that he knows better.
func edit(o object, d *dice) {
	slots, err := assignment.ParseSlots(annotation(o, assignment.DefaultKey))
	if err != nil || len(slots) == 0 {
		return
	}
	ids := slots.IDs()
	a, b := pick(d, ids), pick(d, ids)
	switch d.below(3) {
	case 0:
		slots[a], slots[b] = slots[b], slots[a]
	case 1:
		delete(slots, a)
	default:
		slots[a] = slots[b] + "x"
	}
	setText(o, "annotations", assignment.DefaultKey, slots.Encode())
	if d.chance(0.5) { // he knows about the seal, too
		values := map[string]string{}
		for key := range at(o, metadata, "annotations") {
			values[key] = annotation(o, key)
		}
		setText(o, "annotations", assignment.SealKey, assignment.Seal(values, assignment.DefaultKey))
	}
}

func corrupt(o object, d *dice) {
	setText(o, "annotations", pick(d, ours()), pick(d, []string{"", "{", "[]", `{"0":1}`, `{"-1":"a"}`, "1e3", "99999999999999999999", `{"0":"a","1":"a"}`}))
}

// oldAnnotations puts all annotations back as they were a while ago.
func oldAnnotations(w *world, _ Fault, d *dice) {
	v := w.owner()
	if v == nil {
		return
	}
	old := v
	for range d.between(1, 12) {
		if old.before.exists() {
			old = old.before
		}
	}
	was := at(old.object, metadata, "annotations")
	w.server.change(w.profile.resource, ownerName, writer{manager: "kubectl-replace"}, func(o object) {
		if was == nil {
			delete(need(o, metadata), "annotations")
			return
		}
		need(o, metadata)["annotations"] = clone(was)
	})
}

// damage is one of the foreign writes to the owner.
func (w *world) damage(d *dice) {
	if !w.quiet {
		w.step("damage")
		pick(d, []func(*world, Fault, *dice){foreignWrite(wipe), foreignWrite(edit), foreignWrite(corrupt), oldAnnotations})(w, Fault{}, d)
	}
}

func clearFields(w *world, _ Fault, _ *dice) {
	w.server.change(w.profile.resource, ownerName, writer{manager: "kubectl-patch"}, func(o object) { need(o, metadata)["managedFields"] = []any{} })
}

// applyOwner is somebody's server-side apply of a label-like annotation: it starts tracking again.
func (w *world) applyOwner() {
	w.podNumber++
	w.server.change(w.profile.resource, ownerName, writer{manager: "argocd", apply: true}, func(o object) {
		setText(o, "annotations", "example.com/applied", strconv.Itoa(w.podNumber))
	})
}

// recreateOwner deletes the workload, its pods left alone (cascade=orphan is not simulated: they go too, by and by).
func recreateOwner(w *world, f Fault, _ *dice) {
	v := w.owner()
	if v == nil {
		return
	}
	n, version := number(v.object, "spec", v.kind.count), template(v.object)
	w.server.remove(v)
	w.after(f.Lasts, func() {
		if w.owner() == nil {
			w.createOwner(n, version)
		}
	})
}

func removeReceipt(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.server.change(pods, v.name, writer{manager: "kubectl-annotate"}, func(o object) {
			setText(o, "annotations", assignment.ReceiptKey, "")
			if d.chance(0.5) {
				setText(o, "labels", assignment.InstanceIDLabel, "")
			}
		})
	}
}

func corruptReceipt(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.server.change(pods, v.name, writer{manager: "kubectl-annotate"}, func(o object) {
			if d.chance(0.3) {
				setText(o, "labels", assignment.InstanceIDLabel, "7")
				return
			}
			setText(o, "annotations", assignment.ReceiptKey, pick(d, []string{"{", "null", `{"uid":"x","owner":"y"}`}))
		})
	}
}

func takeRBAC(w *world, f Fault, d *dice) {
	what := pick(d, []string{
		"get " + w.profile.resource, "patch " + w.profile.resource, "watch " + w.profile.resource, "list " + w.profile.resource,
		"get pods", "list pods", "watch pods", "patch pods", "get replicasets", "create events",
	})
	w.server.refusals[what] = true
	w.after(f.Lasts, func() { delete(w.server.refusals, what) })
}

func takeQuota(w *world, f Fault, _ *dice) {
	w.server.quota = true
	w.after(f.Lasts, func() { w.server.quota = false })
}

func refuseAdmission(w *world, f Fault, _ *dice) {
	w.server.admission = true
	w.after(f.Lasts, func() { w.server.admission = false })
}

func scaleOwner(w *world, _ Fault, d *dice) {
	if v := w.owner(); v != nil {
		w.scale(v, d.between(0, 5))
	}
}

func rollout(w *world, _ Fault, _ *dice) {
	w.server.change(w.profile.resource, ownerName, writer{manager: "kubectl-set"}, func(o object) {
		need(o, "spec", "template")["version"] = int64(template(o) + 1)
	})
}

// undo is kubectl rollout undo: the template and all annotations of the ReplicaSet before.
func undo(w *world, _ Fault, d *dice) {
	v := w.owner()
	if v == nil {
		return
	}
	_, old, _ := w.revisions(v)
	if len(old) == 0 {
		return
	}
	rs := pick(d, old).object
	w.server.change(deployments, ownerName, writer{manager: "kubectl-rollout"}, func(o object) {
		need(o, "spec", "template")["version"] = int64(template(rs))
		was := clone(at(rs, metadata, "annotations"))
		was[revisionKey] = annotation(o, revisionKey)
		need(o, metadata)["annotations"] = was
	})
}

func deleteSome(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.server.deletePod(v.name, w.profile.grace)
	}
}

func evictSome(w *world, _ Fault, d *dice) {
	if v := w.somePod(d); v != nil {
		w.evict(v.name)
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
	for _, p := range w.running() {
		p.goOn()
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
