package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// counted is the count with which the containers of a pod of the controller started, and what follows from it.
type counted struct {
	// onCount is what happens when the count changes, and started the start count. turn: the pod's turn is in progress.
	onCount, started string
	turn             bool
}

// behind reports whether the pod should restart or be replaced, because its containers started with another count.
func (f *facts) behind(p pod) bool {
	_, err := strconv.Atoi(p.started)
	changes := p.onCount == assignment.OnCountRestart || p.onCount == assignment.OnCountReplace
	return changes && err == nil && p.live() && !p.Terminating && p.Receipt.Slot() < f.owner.Count && p.started != number(f.owner.Count)
}

// onCount explains what a pod with an id waits for because the count changed.
func (f *facts) onCount(p pod) []string {
	under := f.those(func(q pod) bool { return q.turn && q.live() })
	settle, _ := assignment.SettleAfter(f.owner.Annotations)
	first := fmt.Sprintf("the containers of the pod started with count %s, and the count is %d: ", p.started, f.owner.Count)
	still := fmt.Sprintf(" when the count has stood still for %s (annotation %s)", settle, assignment.SettleKey)
	switch {
	case p.turn:
		return []string{fmt.Sprintf("the containers of the pod start again with count %s: the next pod's turn comes when all have started and the pod is available", p.started)}
	case !f.behind(p):
		return nil
	case p.onCount == assignment.OnCountReplace && !f.replaces(p):
		return []string{fmt.Sprintf("%sidalloc-controller evicts no pods of a %s, so set annotation %s of the pod template to %s or %s",
			first, f.owner.Kind, assignment.OnCountKey, assignment.OnCountRestart, assignment.OnCountKeep)}
	case p.onCount == assignment.OnCountReplace && f.owner.Rollout.Paused:
		return []string{first + "idalloc-controller evicts the pod when the Deployment is no longer paused: kubectl rollout resume deployment " + f.owner.Name}
	case p.onCount == assignment.OnCountReplace:
		return []string{first + "idalloc-controller evicts the pod" + still + ", and as annotation " + assignment.TurnsKey + " and the disruption budgets permit. A pod of an older revision is left to the rolling update"}
	case len(under) > 0:
		return []string{first + "they start again when the turns of others have ended (" + few(under) + "): see why these are not available, or raise annotation " + assignment.TurnsKey}
	}
	return []string{first + "they start again" + still}
}

// countChanges finds pods that should start again with the present count.
func countChanges(f *facts) []about {
	behind := f.those(f.behind)
	for i, name := range behind {
		behind[i] = fmt.Sprintf("%s (%s)", name, f.pods[name].started)
	}
	under := f.those(func(p pod) bool { return p.turn && p.live() })
	if len(behind)+len(under) == 0 {
		return nil
	}
	var parts []string
	if len(behind) > 0 {
		parts = append(parts, fmt.Sprintf("containers of %d pods started with another count than %d: %s", len(behind), f.owner.Count, few(behind)))
	}
	if len(under) > 0 {
		parts = append(parts, "the turn of these pods to start with the new count is under way: "+few(under))
	}
	return []about{{with: words{"what": strings.Join(parts, "; ")}}}
}
