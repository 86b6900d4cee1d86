package splits

import "fmt"

// owner is who counts pods: one of two Deployments, or a ReplicaSet that has none.
type owner uint8

const (
	nobody owner = iota
	depW
	depV
	setA
	setB
	owners
)

func (o owner) String() string { return [...]string{"nobody", "W", "V", "A", "B"}[o] }

func (o owner) deployment() bool { return o == depW || o == depV }

func (o owner) count() int {
	if o.deployment() {
		return 3
	}
	return 2
}

const (
	mostPods        = 4
	mostControllers = 2
	none            = int8(-1)
)

type phase uint8

const (
	absent phase = iota
	gated
	running
	ending
)

// pod is what the API server has of a pod, and what a controller has heard of it. lock is the owner that its receipt names, and under the one that its
// program was told when it began, with this id and token.
type pod struct {
	phase       phase
	lock, under owner
	slot, id    int8
	begun       bool
	token       uint8
	// told says that the process of an agent was told to take slot, and confirmed that T3 has shown its receipt alone.
	told, confirmed bool
}

func (p pod) live() bool { return p.phase != absent }
func (p pod) runs() bool { return p.phase >= running }

// deployment is one as the API server has it.
type deployment uint8

const (
	away deployment = iota
	there
	leaving // the garbage collector orphans its ReplicaSets
)

// controller is what one knows. pass is the owner that it reconciles, and listed are the controllers of the ReplicaSets as it has listed them in this
// pass. sure are the pods whose bytes T3 has confirmed.
type controller struct {
	pods        [mostPods]pod
	deployments [3]deployment
	pass        owner
	listed      [2]owner
	sure        [mostPods]bool
}

type world struct {
	pods        [mostPods]pod
	sets        [2]owner
	alone       [2]bool
	deployments [3]deployment
	controllers [mostControllers]controller

	tokens, deletes, creates, ends, adopts uint8
}

// clause is one of the rule that a model may leave out.
type clause string

const (
	whole       clause = ""
	neverFrozen clause = "no owner is frozen"
)

// budget bounds a model. start is how it begins: see first. agents is how many of the last pods take for themselves.
type budget struct {
	start, controllers, agents     int
	deletes, creates, ends, adopts uint8
	without                        clause
}

func setOf(i int) int { return i / 2 }

// ownerOf returns who counts a pod if these control the ReplicaSets.
func ownerOf(sets [2]owner, i int) owner {
	if c := sets[setOf(i)]; c != nobody {
		return c
	}
	return setA + owner(setOf(i)) //nolint:gosec // 0 or 1
}

func (m *model) first() world {
	w := world{sets: [2]owner{depW, depW}, deletes: m.deletes, creates: m.creates, ends: m.ends, adopts: m.adopts}
	w.deployments[depW] = there
	for i := range w.pods {
		w.pods[i] = pod{slot: none, id: none}
	}
	run := func(i int, id int8) {
		w.tokens++
		w.pods[i] = pod{phase: running, lock: depW, under: depW, slot: id, id: id, begun: true, token: w.tokens, told: m.agent(i), confirmed: m.agent(i)}
	}
	wait := func(all ...int) {
		for _, i := range all {
			w.pods[i].phase = gated
		}
	}
	switch m.start {
	case 0: // in mid-rollout
		run(0, 0)
		run(1, 1)
		run(2, 2)
		wait(3)
	case 1:
		run(0, 0)
		run(2, 1)
		wait(1, 3)
	case 2: // B is empty
		run(0, 0)
		run(1, 1)
	case 3: // two ids are in an order that no ReplicaSet would give
		run(0, 1)
		run(2, 0)
		wait(1)
	}
	for c := range m.controllers {
		w.controllers[c] = controller{pods: w.pods, deployments: w.deployments}
	}
	return w
}

// replicas reports whether a ReplicaSet makes pods.
func (m *model) replicas(set int) bool { return set == 0 || m.start != 2 }

func (m *model) agent(i int) bool { return i >= mostPods-m.agents }

func name(i int) string { return fmt.Sprintf("%c%d", 'a'+setOf(i), i%2) }

// changed has controllers forget what T3 said of a pod.
func (w *world) changed(i int) {
	for c := range w.controllers {
		w.controllers[c].sure[i] = false
	}
}

// bad says what is wrong with a world.
func (m *model) bad(w *world) string {
	for i, p := range w.pods {
		for j, q := range w.pods[:i] {
			switch {
			case !p.runs() || !q.runs() || p.id != q.id:
			case p.under == q.under:
				return "two run under one id of one owner"
			case ownerOf(w.sets, i) == ownerOf(w.sets, j) && m.adopts == 0:
				return "two of one owner run under one id"
			}
		}
	}
	return ""
}
