package splits

import (
	"fmt"

	"github.com/idalloc/idalloc/controller/internal/decision"
)

type model struct {
	budget

	decided map[known]done
}

type edge struct {
	what string
	to   world
}

func (m *model) next(w world) (out []edge) {
	add := func(what string, do func(t *world)) {
		t := w
		if do(&t); t != w {
			out = append(out, edge{what, t})
		}
	}
	m.people(w, add)
	m.kubernetes(w, add)
	for c := range m.controllers {
		m.hears(w, c, add)
		if w.controllers[c].pass != nobody {
			m.acts(w, c, add)
		}
		m.begins(w, c, add)
	}
	return out
}

type adds func(what string, do func(t *world))

func (m *model) people(w world, add adds) {
	for _, d := range []owner{depW, depV} {
		if w.deployments[d] == there && w.deletes > 0 {
			add(fmt.Sprintf("a person deletes Deployment %s with --cascade=orphan", d), func(t *world) { t.deployments[d], t.deletes = leaving, t.deletes-1 })
		}
		if other := depW + depV - d; w.deployments[d] == away && w.deployments[other] != there && w.creates > 0 {
			add(fmt.Sprintf("a person makes Deployment %s", d), func(t *world) { t.deployments[d], t.creates = there, t.creates-1 })
		}
	}
	for r := range w.sets {
		if w.adopts > 0 && w.sets[r] == nobody && !w.alone[r] {
			add(fmt.Sprintf("a person has ReplicaSet %s stay alone", setA+owner(r)), func(t *world) { t.alone[r], t.adopts = true, t.adopts-1 })
		}
	}
}

func (m *model) kubernetes(w world, add adds) {
	for r, of := range w.sets {
		set := setA + owner(r)
		for _, d := range []owner{depW, depV} {
			if of == d && w.deployments[d] == leaving {
				add(fmt.Sprintf("ReplicaSet %s is orphaned", set), func(t *world) {
					if t.sets[r] = nobody; t.sets[0] != d && t.sets[1] != d {
						t.deployments[d] = away
					}
				})
			}
			if of == nobody && w.deployments[d] == there {
				add(fmt.Sprintf("%s adopts ReplicaSet %s", d, set), func(t *world) { t.sets[r] = d })
			}
		}
	}
	for i, p := range w.pods {
		gone := func(t *world) { t.pods[i] = pod{slot: none, id: none}; t.changed(i) }
		switch {
		case p.phase == absent && m.replicas(setOf(i)):
			add("pod "+name(i)+" is made", func(t *world) { t.pods[i].phase = gated })
		case p.phase == ending:
			add("pod "+name(i)+" ends", gone)
		}
		if w.ends > 0 && p.phase == running {
			add("pod "+name(i)+" is deleted", func(t *world) { t.ends--; t.pods[i].phase = ending; t.changed(i) })
		} else if w.ends > 0 && p.phase == gated {
			add("pod "+name(i)+" is deleted", func(t *world) { t.ends--; gone(t) })
		}
		if m.agent(i) && p.phase == gated && p.lock != nobody && p.confirmed {
			add("agent "+name(i)+" begins", func(t *world) { t.start(i); t.changed(i) })
		}
	}
}

func (w *world) start(i int) {
	p := &w.pods[i]
	w.tokens++
	p.phase, p.begun, p.under, p.id, p.token = running, true, p.lock, p.slot, w.tokens
}

func (m *model) hears(w world, c int, add adds) {
	who, k := fmt.Sprintf("controller %d ", c), w.controllers[c]
	if k.deployments != w.deployments {
		add(who+"hears of the Deployments", func(t *world) { t.controllers[c].deployments = t.deployments })
	}
	for i := range w.pods {
		if k.pods[i] != w.pods[i] {
			add(who+"hears of pod "+name(i), func(t *world) { t.controllers[c].pods[i] = t.pods[i] })
		}
	}
	for o := depW; o < owners; o++ {
		if (k.pass != o || k.listed != w.sets) && (!o.deployment() || k.deployments[o] != away) {
			add(who+"begins a pass of "+o.String(), func(t *world) { t.controllers[c].pass, t.controllers[c].listed = o, t.sets })
		}
	}
}

// frozen is what freeze of package reconciler finds.
func (m *model) frozen(w *world, k *controller, o owner, pods [mostPods]pod) bool {
	if m.without == neverFrozen || !o.deployment() && w.alone[o-setA] {
		return false
	}
	for r, of := range k.listed {
		used := m.replicas(r)
		for i, p := range pods {
			used = used || setOf(i) == r && p.live()
		}
		s := decision.Set{Made: true, Own: of == o || setA+owner(r) == o, Loose: of == nobody || k.deployments[of] != there}
		if used && s.Freezes(decision.Owner{Replaces: o.deployment()}) {
			return true
		}
	}
	return false
}

// acts is what a controller does in a pass.
func (m *model) acts(w world, c int, add adds) {
	k := w.controllers[c]
	who := fmt.Sprintf("controller %d, for %s: ", c, k.pass)
	know := known{owner: k.pass, pods: k.pods, pod: -1, proposed: none}
	for i := range k.pods {
		know.owns[i] = ownerOf(k.listed, i) == k.pass
		know.shows[i] = shown{slot: none, runs: none}
	}
	know.frozen = m.frozen(&w, &k, k.pass, k.pods)
	m.takes(w, c, who, know, add)
	if d := m.decide(know); d.confirms {
		m.confirms(w, c, who, know, add)
	}
	m.removes(w, c, who, add)
}

func (m *model) takes(w world, c int, who string, know known, add adds) {
	k := w.controllers[c]
	for i, p := range k.pods {
		if !know.owns[i] || p.phase != gated || p.lock != nobody || p != w.pods[i] { // the write tests the pod's version
			continue
		}
		for x := range know.owner.count() {
			know := know
			know.pod, know.proposed = int8(i), int8(x)
			d := m.decide(know)
			if d.take[i] == nobody {
				continue
			}
			add(fmt.Sprintf("%s%s locks %s:%d (T2)", who, name(i), d.take[i], d.slot[i]), func(t *world) {
				q := &t.pods[i]
				q.lock, q.slot = d.take[i], d.slot[i]
				q.told = m.agent(i)
				t.changed(i)
				t.controllers[c].pods[i] = *q
			})
		}
	}
}

// list is what T3 shows: what pods lock under the owner's name and those from which its pods come, and what those do that are the owner's.
func (m *model) list(w *world, k *controller, know *known) {
	var labels [owners]bool
	labels[know.owner] = true
	for i, p := range k.pods {
		if know.owns[i] && p.live() {
			labels[p.lock], labels[p.under] = true, true
		}
	}
	labels[nobody] = false
	know.listed = true
	for i, p := range w.pods {
		s := shown{slot: none, runs: none}
		ours := ownerOf(w.sets, i) == know.owner || p.runs() && p.under == know.owner
		if p.live() && p.lock != nobody && (labels[p.lock] || ours) {
			s = shown{locks: true, same: p == k.pods[i], begun: p.begun, slot: p.slot, runs: none, under: p.lock}
		}
		if p.runs() && ours && !m.agent(i) {
			s.runs = p.id
		}
		know.shows[i] = s
	}
}

func (m *model) confirms(w world, c int, who string, know known, add adds) {
	k := w.controllers[c]
	m.list(&w, &k, &know)
	d := m.decide(know)
	for i, p := range k.pods {
		switch {
		case p != w.pods[i] || p.phase != gated:
		case d.begin[i] && m.agent(i):
			add(who+"T3 confirms agent "+name(i), func(t *world) { t.pods[i].confirmed = true; t.changed(i); t.controllers[c].pods[i] = t.pods[i] })
		case d.begin[i]:
			add(who+"T3 confirms "+name(i), func(t *world) { t.controllers[c].sure[i] = true })
		case d.withdraw[i]:
			add(who+"T3 has "+name(i)+" withdraw", func(t *world) {
				t.pods[i].lock, t.pods[i].slot, t.pods[i].told = nobody, none, false
				t.changed(i)
				t.controllers[c].pods[i] = t.pods[i]
			})
		}
	}
}

// begins sends a Begin that T3 permitted, however long ago.
func (m *model) begins(w world, c int, add adds) {
	for i, sure := range w.controllers[c].sure {
		if sure && w.pods[i].phase == gated {
			add(fmt.Sprintf("controller %d: %s begins as %s:%d", c, name(i), w.pods[i].lock, w.pods[i].slot), func(t *world) {
				t.start(i)
				t.changed(i)
				t.controllers[c].pods[i] = t.pods[i]
			})
		}
	}
}

// removes is decided on what the API server says.
func (m *model) removes(w world, c int, who string, add adds) {
	k := w.controllers[c]
	know := known{owner: k.pass, pods: w.pods, pod: -1, proposed: none}
	for i := range know.owns {
		know.owns[i] = ownerOf(w.sets, i) == k.pass
		know.shows[i] = shown{slot: none, runs: none}
	}
	know.frozen = m.frozen(&w, &k, k.pass, w.pods)
	now := k
	now.pods = w.pods
	m.list(&w, &now, &know)
	for i, goes := range m.decide(know).remove {
		if goes && w.pods[i].phase == running {
			add(who+"removes "+name(i), func(t *world) { t.pods[i].phase = ending; t.changed(i) })
		}
	}
}
