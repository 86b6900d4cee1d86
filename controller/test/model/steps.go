package model

import "fmt"

// next returns all worlds that may come next.
func (m *model) next(w world) (out []edge) {
	for c := range m.controllers {
		out = append(out, m.nextOf(w, c)...)
	}
	for i := range m.pods {
		out = append(out, m.faults(w, i)...)
	}
	for i := range m.pods {
		if !m.central(i) {
			out = append(out, m.nextOfPeer(w, i)...)
		}
	}
	return out
}

// nextOf returns what a controller does, and what happens to it.
func (m *model) nextOf(w world, c int) (out []edge) {
	k := w.controllers[c]
	add := func(to world, format string, args ...any) {
		out = append(out, edge{what: fmt.Sprintf("controller %d ", c) + fmt.Sprintf(format, args...), to: to})
	}
	if k.late.do != nothing {
		to := w
		to.controllers[c].late = write{}
		m.apply(&to, k.late)
		add(to, "gets its late write of pod %d", k.late.pod)
	}
	for i := range m.pods { // what comes of T3 is decided on one view, so it ends with that
		if k.view[i] != w.pods[i] || k.cache[i] != w.pods[i] {
			to := w
			to.controllers[c].cache[i], to.controllers[c].view[i], to.controllers[c].todo = w.pods[i], w.pods[i], [mostPods]do{}
			add(to, "sees pod %d", i)
		}
		if k.view[i] != k.cache[i] {
			to := w
			to.controllers[c].view[i], to.controllers[c].todo = k.cache[i], [mostPods]do{}
			add(to, "sees pod %d as it was before its write", i)
		}
	}
	if w.crashes > 0 {
		to := w
		to.crashes--
		to.controllers[c] = controller{cache: m.oldest(w), view: m.oldest(w), late: k.late}
		add(to, "forgets everything, and sees the pods as they were made")
	}
	for _, a := range m.look(k.view) {
		if a.confirm {
			from := w.pods
			if m.without == fromCache {
				from = k.view
			}
			for _, todo := range m.confirm(k.view, m.listed(k.view, from)) {
				to := w
				to.controllers[c].todo = todo
				add(to, "lists the receipts (T3)")
			}
			continue
		}
		again := w // T2 is before T3, so this is the next reconcile
		again.controllers[c].todo = [mostPods]do{}
		out = append(out, m.send(again, c, a.do, a.pod, a.slot, a.there)...)
	}
	for i, do := range k.todo {
		if do == remove { // with the pod's resourceVersion
			to := w
			to.controllers[c].todo[i] = nothing
			if k.view[i] == w.pods[i] {
				to.pods[i].term = true
			}
			add(to, "removes pod %d", i)
		} else if do != nothing {
			out = append(out, m.send(w, c, do, i, k.view[i].slot, false)...)
		}
	}
	return out
}

// oldest is the view of a controller that starts, and whose server is far behind.
func (m *model) oldest(w world) (view [mostPods]object) {
	for i := range m.pods {
		view[i] = m.newPod(i, w.pods[i].generation)
	}
	if m.adopted && w.pods[0].generation == 0 {
		view[0] = m.first().pods[0]
	}
	return view
}

// send returns the outcomes of a write. One that fails its test changes nothing, and what the controller knows of the pod stays as it is.
func (m *model) send(w world, c int, what do, i int, slot int8, there bool) (out []edge) {
	tells := what == confirm || what == refuse
	if w.wrote[i] >= m.writes && !tells {
		return nil
	}
	to := w
	if !tells {
		to.wrote[i]++
	}
	k := &to.controllers[c]
	seen := k.view[i]
	q := write{
		do: what, pod: uint8(i), generation: seen.generation, test: seen.bytes, bytes: to.wrote[i], slot: slot, there: there, known: seen.confirmed, denied: seen.refused, //nolint:gosec // an index below 3
	}
	k.todo[i] = nothing
	if w.unanswered > 0 && k.late.do == nothing {
		to := to
		to.unanswered--
		to.controllers[c].late = q
		out = append(out, edge{what: fmt.Sprintf("controller %d gets no answer: %s", c, q), to: to})
	}
	if !m.apply(&to, q) {
		return out
	}
	knowing := what == begin && m.knows(&w, c, i, slot)
	m.heard(&k.view[i], to.pods[i])
	return append(out, edge{what: fmt.Sprintf("controller %d %s", c, q), to: to, knowing: knowing})
}

// knows reports whether the controller sees that another pod than i runs under the id, and it does.
func (m *model) knows(w *world, c, i int, id int8) bool {
	for j := range m.pods {
		seen := w.controllers[c].view[j]
		if j != i && m.central(j) && seen.id == id && !seen.foreign && seen.generation == w.pods[j].generation && m.works(w, j) == id {
			return true
		}
	}
	return false
}

// String is for histories.
func (q write) String() string {
	switch q.do {
	case take:
		return fmt.Sprintf("locks %d for pod %d (T2)", q.slot, q.pod)
	case withdraw:
		return fmt.Sprintf("withdraws the lock of pod %d", q.pod)
	case begin:
		return fmt.Sprintf("has pod %d begin under %d", q.pod, q.slot)
	case beginAgain:
		return fmt.Sprintf("confirms that pod %d has begun under %d", q.pod, q.slot)
	case confirm:
		return fmt.Sprintf("confirms the lock of pod %d", q.pod)
	case refuse:
		return fmt.Sprintf("refuses the lock of pod %d", q.pod)
	case nothing, remove:
	}
	return "does nothing"
}

// faults returns what may happen to a pod.
func (m *model) faults(w world, i int) (out []edge) {
	o := w.pods[i]
	add := func(what string, do func(to *world, o *object)) {
		to := w
		do(&to, &to.pods[i])
		out = append(out, edge{what: fmt.Sprintf("pod %d %s", i, what), to: to})
	}
	if !m.central(i) {
		return nil
	}
	if o.term {
		add("is gone, and another pod comes", func(to *world, _ *object) { m.replace(to, i) })
	}
	if w.deletions > 0 && !o.term {
		add("is deleted", func(to *world, o *object) {
			to.deletions--
			o.term = true
		})
	}
	if w.opened > 0 && o.gated {
		add("loses its gate", func(to *world, o *object) {
			to.opened--
			o.gated = false
		})
	}
	if w.removed > 0 && o.bytes != 0 && !o.foreign {
		add("loses its receipt", func(to *world, o *object) {
			to.removed--
			o.bytes, o.state, o.slot, o.begun = 0, 0, noID, false
		})
	}
	if o.locksThere && o.gated && !o.term {
		add("begins under the other owner's id", func(to *world, o *object) {
			to.wrote[i]++
			o.id, o.begun, o.gated, o.beganThere, o.bytes = o.slot, true, false, true, to.wrote[i]
		})
	}
	if o.foreign {
		add("comes from another owner to this one", func(_ *world, o *object) { o.foreign = false })
	}
	return out
}
