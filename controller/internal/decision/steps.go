package decision

// Step is a kind of work that a decision requires. A pass does the first step that is due, and decides again.
type Step int

// The steps, in order.
const (
	// StepList lists the pods that no watch covers: a new process does not know them, and the map could give their slots to others.
	StepList Step = iota
	// StepMap writes the map (T1).
	StepMap
	// StepLock writes receipts: T2, withdrawals, and Begin.
	StepLock
	// StepConfirm makes the list for T3.
	StepConfirm
	// StepTell writes counts and proposals.
	StepTell
	// StepProbe tests by dry runs whether pods can be written again.
	StepProbe
	// StepVerify reads everything from the API server, because pods should be removed.
	StepVerify
	// StepRemove removes pods.
	StepRemove
	// StepNone means that nothing is left to do.
	StepNone
)

// mostLists is how often a pass may do T3. A second list covers what the first one revealed.
const mostLists = 3

// Steps counts the steps that a pass has done.
type Steps map[Step]int

// Did records that a step was done. A failed step is retried in the next pass. After T3 the map and the receipts may be written again, because T3 shows locks
// that they did not consider.
func (s Steps) Did(step Step, err error) {
	if s[step]++; err != nil {
		s[step] = mostLists
	}
	if step == StepConfirm && err == nil {
		delete(s, StepMap)
		delete(s, StepLock)
	}
}

// First returns the first step that is due and that the pass may still do.
func (d Decision) First(done Steps) Step {
	for step, due := range [...]bool{
		StepList: d.List, StepMap: d.Plan.Next != nil, StepLock: len(d.Take)+len(d.Withdraw)+len(d.Begin) > 0, StepConfirm: d.Confirm,
		StepTell: len(d.Publish)+len(d.Propose) > 0, StepProbe: len(d.Probe) > 0, StepVerify: d.Verify, StepRemove: len(d.Remove) > 0 && !d.Verify,
	} {
		most := 1
		if Step(step) == StepConfirm {
			most = mostLists
		}
		if due && done[Step(step)] < most {
			return Step(step)
		}
	}
	return StepNone
}

// probe adds the pods that need a probe to the decision.
func (v *view) probe() {
	written := map[string]bool{}
	for _, t := range v.d.Take {
		written[t.Pod] = true
	}
	for _, b := range v.d.Propose {
		written[b.Pod] = true
	}
	for _, b := range v.d.Publish {
		written[b.Pod] = true
	}
	for _, p := range v.pods {
		if p.Refused && p.Owned && !p.Terminating && !written[p.Name] {
			v.d.Probe = append(v.d.Probe, p.Name)
		}
	}
}
