package allocator

import (
	"github.com/go-logr/logr"

	"github.com/idalloc/idalloc/pkg/allocator/event"
)

// logged writes what happened into the log, which names another owner when the pod has one.
type logged struct{ log *logr.Logger }

// Observe implements event.Observer.
func (l logged) Observe(e event.Event) {
	switch e := e.(type) {
	case event.Published:
		if e.To.State != e.From.State || e.To.ID != e.From.ID {
			l.log.Info("state changed", "state", e.To.State, "id", e.To.ID, "count", e.To.Count, "token", e.To.Token)
		}
	case event.Waiting:
		if e.Live == 0 {
			l.log.Info("waiting for a slot", "count", e.Count, "reason", e.Reason)
			return
		}
		l.log.Info("waiting for a slot", "count", e.Count, "live", e.Live, "waiting", e.Waiting, "reason", e.Reason)
	case event.OwnerMissing:
		l.log.Info("waiting for the owner, which does not exist", "reason", e.Reason)
	case event.Conflict:
		l.log.V(1).Info("conflict: somebody else changed the object first")
	case event.Written:
		l.log.V(1).Info("assignment written", "filled", len(e.Filled), "freed", len(e.Freed), "asked", len(e.Asked))
	case event.NotTaken:
		l.log.V(1).Info("slot not taken", "reason", e.Reason)
	case event.Away:
		if e.Logged {
			return
		}
		l.log.Info("the API server is away; the last state stays in force", "since", e.Since, "reason", e.Reason.Error())
	case event.Back:
		l.log.Info("the API server is back")
	default:
		l.slot(e)
		l.partitions(e)
	}
}

// slot writes what became of a slot or of the assignment.
func (l logged) slot(e event.Event) {
	switch e := e.(type) {
	case event.Asked:
		l.log.Info("the slot is asked for", "id", e.ID, "requester", e.Requester)
	case event.Given:
		l.log.Info("slot given away", "id", e.ID, "count", e.Count, "requester", e.Requester)
	case event.GivenBack:
		l.log.Info("the process before this one ended soon after it took the slot: given back to the pods that gave up for it", "id", e.ID, "failed", e.Failed)
	case event.Lost:
		l.log.Info("id lost", "id", e.ID, "token", e.Token, "reason", e.Reason)
	case event.Fenced:
		l.log.Info("no contact with the API server for too long: the id is withdrawn until it is back", "id", e.ID, "token", e.Token, "fenceAfter", e.FenceAfter, "reason", e.Reason)
	case event.Damaged:
		message := "damage repaired"
		if e.Expected {
			message = "assignment brought up to date"
		}
		l.log.Info(message, "reason", e.Reason, "detail", e.Detail)
	case event.Undone:
		l.log.Info("somebody else undoes what this pod writes on the owner: the next writes wait longer and longer", "longest", e.Longest)
	}
}

// partitions writes what became of partitions.
func (l logged) partitions(e event.Event) {
	switch e := e.(type) {
	case event.Taken:
		if e.Partitions != "" {
			l.log.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
		}
	case event.Grown:
		l.log.Info("partitions taken", "id", e.ID, "partitions", e.Partitions, "token", e.Token)
	case event.Revoked:
		l.log.Info("the work on partitions is to stop: another id is to have them", "id", e.ID, "partitions", e.Partitions, "stop", e.Stop)
	case event.Yielded:
		l.log.Info("partitions yielded", "id", e.ID, "partitions", e.Partitions)
	case event.Paused:
		switch {
		case !e.Paused:
			l.log.Info("the pause is over: this pod takes partitions again", "id", e.ID)
		case e.For > 0:
			l.log.Info("the program failed again and again: for a while other pods get the partitions", "id", e.ID, "failed", e.Failed, "for", e.For)
		default:
			l.log.Info("paused: other pods get the partitions", "id", e.ID)
		}
	case event.PartitionsMoved:
		l.log.Info("this pod's write moved partitions", "given", e.Given, "taken", e.Taken)
	case event.PartitionsInForce:
		l.log.Info("what the user wants about partitions is in force", "old", e.Old.String(), "new", e.New.String())
	case event.FailedOver:
		for _, f := range e.From {
			l.log.Info("other ids got the partitions of an id that no pod holds", "id", f.ID, "partitions", f.Partitions, "to", f.To, "after", f.After)
		}
	case event.PartitionsHeldUp:
		l.log.Info("partitions are held up", "reason", e.Reason, "detail", e.Detail)
	}
}
