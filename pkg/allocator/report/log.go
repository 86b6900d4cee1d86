// Package report reports to people what happens to one pod's claim, in the log and in Kubernetes Events about the owner and the pod. It determines what a
// write changed on the owner.
package report

import (
	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// Log is an observer that logs events. The logger may be replaced between two events.
type Log struct{ Logger *logr.Logger }

// Observe implements event.Observer.
func (l Log) Observe(e event.Event) {
	switch e := e.(type) {
	case event.Published:
		if e.To.State != e.From.State || e.To.ID != e.From.ID {
			// Log: the id or the state has changed.
			l.Logger.Info("state changed", "state", e.To.State, "id", e.To.ID, "count", e.To.Count, "token", e.To.Token)
		}
	case event.Waiting:
		if e.Live == 0 {
			// Log: no slot is free, or the workload was deleted; `reason` says how many pods live and what would free a slot.
			// Do: see [a pod waits for a slot](operations.md#a-pod-waits-for-a-slot). When a workload of the same name appears, the pod joins it.
			l.Logger.Info("waiting for a slot", "count", e.Count, "reason", e.Reason)
			return
		}
		l.Logger.Info("waiting for a slot", "count", e.Count, "live", e.Live, "waiting", e.Waiting, "reason", e.Reason)
	case event.Conflict:
		l.Logger.V(1).Info("conflict: another write changed the object first")
	case event.Written:
		l.Logger.V(1).Info("assignment written", "filled", len(e.Filled), "freed", len(e.Freed), "asked", len(e.Asked))
	case event.NotTaken:
		l.Logger.V(1).Info("slot not taken", "reason", e.Reason)
	case event.Away:
		if e.Logged {
			return
		}
		// Log: the watch is down; the pod keeps its id.
		// Do: check the API server.
		l.Logger.Info("the API server is away; the last state stays in force", "since", e.Since, "reason", e.Reason.Error())
	case event.Back:
		// Log: the watch continues.
		l.Logger.Info("the API server is back")
	default:
		l.slot(e)
		l.partitions(e)
	}
}

// slot logs changes of a slot or of the assignment.
func (l Log) slot(e event.Event) {
	switch e := e.(type) {
	case event.Asked:
		// Log: `requester`, a pod of a newer revision, waits for the slot; this pod stops its work.
		l.Logger.Info("the slot is asked for", "id", e.ID, "requester", e.Requester)
	case event.NotHandedOver:
		// Log: a slot does not go to `requester`, or not now. `reason`: its request is `dropped`, the work `continues`, the stop is `called off`, or no pod
		// may be asked (`not asked`). `detail` says why.
		// Do: see [a pod waits for a slot](operations.md#a-pod-waits-for-a-slot).
		l.Logger.Info("no hand-over now", "id", e.ID, "requester", e.Requester, "reason", e.Why, "detail", e.Detail)
	case event.Given:
		// Log: this pod handed its slot over to `requester`, or had an id at or above the count.
		l.Logger.Info("slot given away", "id", e.ID, "count", e.Count, "requester", e.Requester)
	case event.GivenBack:
		// Log: the program of this pod was killed or crashed `failed` times in a row.
		// Do: read the program's log; repair the revision or undo it.
		l.Logger.Info("the process before this one ended soon after it took the slot: given back to the pods that gave up for it", "id", e.ID, "failed", e.Failed)
	case event.Lost:
		// Log: the pod's receipt or labels were changed or removed, or the pod is gone; `reason` says which. idalloc has withdrawn the id and claims one
		// again.
		// Do: nothing after a force delete or a restored backup. Otherwise find out what writes the pods' annotations.
		l.Logger.Info("id lost", "id", e.ID, "token", e.Token, "reason", e.Reason)
	case event.Fenced:
		// Log: strict mode: the Lease was not renewed in time, or another pod has it; `reason` says which.
		// Do: if it was refused, see [the API server refuses renewals](outages.md#the-api-server-refuses-renewals). Otherwise check the API server and the
		// node's network.
		l.Logger.Info("the time of the Lease is over: the id is withdrawn until this pod has it again", "id", e.ID, "token", e.Token, "fenceAfter", e.FenceAfter, "reason", e.Reason)
	case event.Unrenewed:
		// Log: strict mode: the API server refuses the renewals of the Lease; `reason` has its sentence. The id ends with the Lease, because other pods may take
		// that.
		// Do: see [the API server refuses renewals](outages.md#the-api-server-refuses-renewals).
		l.Logger.Info("renewals of the Lease are refused: the id is withdrawn when the time of the Lease is over", "reason", e.Reason)
	case event.Damaged:
		// Log: idalloc's annotations were changed or damaged; `reason` is that of the Event.
		// Do: see the Event.
		message := "damage repaired"
		if e.Expected {
			// Log: the assignment was changed, and the pods wrote it again; `reason` is that of the Normal Event.
			message = "assignment brought up to date"
		}
		l.Logger.Info(message, "reason", e.Reason, "detail", e.Detail)
	case event.Undone:
		// Log: the wait doubles up to `longest`, until a write lasts for a minute. No pod loses its id.
		// Do: see [something undoes what the pods write](operations.md#something-undoes-what-the-pods-write).
		l.Logger.Info("something undoes what this pod writes on the owner: the next writes wait longer and longer", "longest", e.Longest)
	}
}

// partitions logs changes of partitions.
func (l Log) partitions(e event.Event) {
	switch e := e.(type) {
	case event.Taken:
		if e.Partitions != "" {
			// Log: this pod works on `partitions` from now on; their fencing token is `token`.
			l.Logger.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
		}
	case event.Grown:
		l.Logger.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
	case event.Revoked:
		// Log: the pod gives `partitions` away as soon as its work on them has stopped; `stop` is the number of this stop.
		l.Logger.Info("stopping the work on partitions, which another id gets", "id", e.ID, "partitions", e.Partitions, "stop", e.Stop)
	case event.Yielded:
		// Log: the work on them has stopped, and the next pod that plans gives them to another id.
		l.Logger.Info("partitions yielded", "id", e.ID, "partitions", e.Partitions)
	case event.Paused:
		switch {
		case !e.Paused:
			// Log: `POST /v1/resume` came, or the time of the pause is over.
			l.Logger.Info("the pause is over: this pod takes partitions again", "id", e.ID)
		case e.For > 0:
			// Log: the command of `idalloc run` ended `failed` times in a row, each time soon after its start. The pod keeps its id and runs no command
			// until the time `for` is over.
			// Do: read the program's log.
			l.Logger.Info("the program failed again and again: for a while other pods get the partitions", "id", e.ID, "failed", e.Failed, "for", e.For)
		default:
			// Log: `POST /v1/pause` came, or the program paused by itself.
			l.Logger.Info("paused: other pods get the partitions", "id", e.ID)
		}
	case event.PartitionsMoved:
		// Log: `given` is how many partitions some id got, and `taken` how many some id lost.
		l.Logger.Info("this pod's write moved partitions", "given", e.Given, "taken", e.Taken)
	case event.PartitionsInForce:
		// Log: another number of partitions or another strategy is in force: `new`.
		l.Logger.Info("the user's wishes for partitions are in force", "old", e.Old.String(), "new", e.New.String())
	case event.FailedOver:
		for _, f := range e.From {
			// Log: one line for each id: no pod held it for longer than `after`.
			// Do: see why the id has no pod.
			l.Logger.Info("other ids got the partitions of an id that no pod holds", "id", f.ID, "partitions", f.Partitions, "to", f.To, "after", f.After)
		}
	case event.PartitionsHeldUp:
		// Log: the number or the strategy that you want cannot be in force, or a change has no room; `reason` is that of the Event.
		// Do: see the Event.
		l.Logger.Info("partitions are held up", "reason", e.Reason, "detail", e.Detail)
	}
}
