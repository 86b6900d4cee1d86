// Package report tells people what happens to one pod's claim: in the log, and in Kubernetes Events about the owner and the pod.
package report

import (
	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// Log is an observer that writes what happened into a log. The log may be replaced between two events.
type Log struct{ Logger *logr.Logger }

// Observe implements event.Observer.
func (l Log) Observe(e event.Event) {
	switch e := e.(type) {
	case event.Published:
		if e.To.State != e.From.State || e.To.ID != e.From.ID {
			l.Logger.Info("state changed", "state", e.To.State, "id", e.To.ID, "count", e.To.Count, "token", e.To.Token)
		}
	case event.Waiting:
		if e.Live == 0 {
			l.Logger.Info("waiting for a slot", "count", e.Count, "reason", e.Reason)
			return
		}
		l.Logger.Info("waiting for a slot", "count", e.Count, "live", e.Live, "waiting", e.Waiting, "reason", e.Reason)
	case event.OwnerMissing:
		l.Logger.Info("waiting for the owner, which does not exist", "reason", e.Reason)
	case event.Conflict:
		l.Logger.V(1).Info("conflict: somebody else changed the object first")
	case event.Written:
		l.Logger.V(1).Info("assignment written", "filled", len(e.Filled), "freed", len(e.Freed), "asked", len(e.Asked))
	case event.NotTaken:
		l.Logger.V(1).Info("slot not taken", "reason", e.Reason)
	case event.Away:
		if e.Logged {
			return
		}
		l.Logger.Info("the API server is away; the last state stays in force", "since", e.Since, "reason", e.Reason.Error())
	case event.Back:
		l.Logger.Info("the API server is back")
	default:
		l.slot(e)
		l.partitions(e)
	}
}

// slot writes what became of a slot or of the assignment.
func (l Log) slot(e event.Event) {
	switch e := e.(type) {
	case event.Asked:
		l.Logger.Info("the slot is asked for", "id", e.ID, "requester", e.Requester)
	case event.Given:
		l.Logger.Info("slot given away", "id", e.ID, "count", e.Count, "requester", e.Requester)
	case event.GivenBack:
		l.Logger.Info("the process before this one ended soon after it took the slot: given back to the pods that gave up for it", "id", e.ID, "failed", e.Failed)
	case event.Lost:
		l.Logger.Info("id lost", "id", e.ID, "token", e.Token, "reason", e.Reason)
	case event.Fenced:
		l.Logger.Info("no contact with the API server for too long: the id is withdrawn until it is back", "id", e.ID, "token", e.Token, "fenceAfter", e.FenceAfter, "reason", e.Reason)
	case event.Damaged:
		message := "damage repaired"
		if e.Expected {
			message = "assignment brought up to date"
		}
		l.Logger.Info(message, "reason", e.Reason, "detail", e.Detail)
	case event.Undone:
		l.Logger.Info("somebody else undoes what this pod writes on the owner: the next writes wait longer and longer", "longest", e.Longest)
	}
}

// partitions writes what became of partitions.
func (l Log) partitions(e event.Event) {
	switch e := e.(type) {
	case event.Taken:
		if e.Partitions != "" {
			l.Logger.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
		}
	case event.Grown:
		l.Logger.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
	case event.Revoked:
		l.Logger.Info("the work on partitions is to stop: another id is to have them", "id", e.ID, "partitions", e.Partitions, "stop", e.Stop)
	case event.Yielded:
		l.Logger.Info("partitions yielded", "id", e.ID, "partitions", e.Partitions)
	case event.Paused:
		switch {
		case !e.Paused:
			l.Logger.Info("the pause is over: this pod takes partitions again", "id", e.ID)
		case e.For > 0:
			l.Logger.Info("the program failed again and again: for a while other pods get the partitions", "id", e.ID, "failed", e.Failed, "for", e.For)
		default:
			l.Logger.Info("paused: other pods get the partitions", "id", e.ID)
		}
	case event.PartitionsMoved:
		l.Logger.Info("this pod's write moved partitions", "given", e.Given, "taken", e.Taken)
	case event.PartitionsInForce:
		l.Logger.Info("what the user wants about partitions is in force", "old", e.Old.String(), "new", e.New.String())
	case event.FailedOver:
		for _, f := range e.From {
			l.Logger.Info("other ids got the partitions of an id that no pod holds", "id", f.ID, "partitions", f.Partitions, "to", f.To, "after", f.After)
		}
	case event.PartitionsHeldUp:
		l.Logger.Info("partitions are held up", "reason", e.Reason, "detail", e.Detail)
	}
}
