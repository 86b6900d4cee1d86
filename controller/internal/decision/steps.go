package decision

// Step is a kind of work that a decision asks for. A pass does the first one that is due, and decides again.
type Step int

// The steps, in their order.
const (
	// StepList lists the pods that no watch has: a process that starts does not know them, and the map could give their slots to others.
	StepList Step = iota
	// StepMap writes the map (T1).
	StepMap
	// StepLock writes receipts: T2, withdrawals, and Begin.
	StepLock
	// StepConfirm makes the list of T3.
	StepConfirm
	// StepTell writes counts and proposals.
	StepTell
	// StepProbe tries by dry runs whether pods can be written again.
	StepProbe
	// StepVerify reads everything from the API server, because pods are to be removed.
	StepVerify
	// StepRemove removes pods.
	StepRemove
	// StepNone says that nothing is left to do.
	StepNone
)

// mostLists is how often a pass does T3. A second list is about what the first one showed.
const mostLists = 3

// Steps counts what a pass has done.
type Steps map[Step]int

// Did notes that a step was done. One that failed comes again in the next pass. T3 shows locks that the map and the receipts did not consider.
func (s Steps) Did(step Step, err error) {
	if s[step]++; err != nil {
		s[step] = mostLists
	}
	if step == StepConfirm && err == nil {
		delete(s, StepMap)
		delete(s, StepLock)
	}
}

// First returns the first step that is due, and that the pass has not done.
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

// probe names the pods that are to be probed.
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
