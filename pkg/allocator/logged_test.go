package allocator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/identity"
)

// The messages and keys are those that docs/operations.md explains.
func TestTheLogSaysWhatHappened(t *testing.T) {
	assigned := identity.Identity{State: identity.StateAssigned, ID: 2, Count: 3, Epoch: 7}
	wider := assigned
	wider.Count = 4
	for name, tc := range map[string]struct {
		event event.Event
		want  string
	}{
		"an id":                         {event.Published{To: assigned}, `"msg"="state changed" "state"="assigned" "id"=2 "count"=3 "epoch"=7`},
		"another count, which is seen":  {event.Published{From: assigned, To: wider}, ""},
		"waiting":                       {event.Waiting{Reason: "room", Count: 3, Live: 5, Waiting: 2}, `"msg"="waiting for a slot" "count"=3 "live"=5 "waiting"=2 "reason"="room"`},
		"waiting beside who knows whom": {event.Waiting{Reason: "room", Count: 3}, `"msg"="waiting for a slot" "count"=3 "reason"="room"`},
		"waiting still":                 {event.StillWaiting{Reason: "room"}, ""},
		"no owner":                      {event.OwnerMissing{Reason: "Deployment a"}, `"msg"="waiting for the owner, which does not exist" "reason"="Deployment a"`},
		"a conflict":                    {event.Conflict{}, `"level"=1 "msg"="conflict: somebody else changed the object first"`},
		"a write": {
			event.Written{Epoch: 7, Filled: make([]plan.Change, 2), Freed: make([]plan.Change, 1), WasClean: true},
			`"level"=1 "msg"="assignment written" "epoch"=7 "filled"=2 "freed"=1 "asked"=0 "clean"=true`,
		},
		"a slot that was not to be had": {event.NotTaken{Reason: "late"}, `"level"=1 "msg"="slot not taken" "reason"="late"`},
		"contact lost":                  {event.Away{Since: time.Unix(0, 0).UTC(), Reason: errors.New("refused")}, `"msg"="the API server is away; the last state stays in force" "since"="1970-01-01 00:00:00 +0000 UTC" "reason"="refused"`},
		"contact found":                 {event.Back{}, `"msg"="the API server is back"`},
		"a request for the slot":        {event.Asked{ID: 2, Requester: "b"}, `"msg"="the slot is asked for" "id"=2 "requester"="b"`},
		"the slot given":                {event.Given{ID: 2, Count: 3, Requester: "b"}, `"msg"="slot given away" "id"=2 "count"=3 "requester"="b"`},
		"the slot given back":           {event.GivenBack{ID: 2, Failed: 1}, `"id"=2 "failed"=1`},
		"an id lost":                    {event.Lost{ID: 2, Epoch: 7, Reason: "another pod's"}, `"msg"="id lost" "id"=2 "epoch"=7 "reason"="another pod's"`},
		"an id fenced":                  {event.Fenced{ID: 2, Epoch: 7, FenceAfter: time.Minute, Reason: "no answer"}, `"id"=2 "epoch"=7 "fenceAfter"="1m0s" "reason"="no answer"`},
		"a receipt nobody stands by":    {event.Withdrawn{ID: 2}, `"msg"="receipt withdrawn: its slot is not given to this pod" "id"=2`},
		"a receipt for another's slot":  {event.Withdrawn{ID: 2, Holder: "b"}, `"msg"="receipt withdrawn: the slot is another pod's" "id"=2 "holder"="b"`},
		"a lost pod":                    {event.PodLost{ID: 2, Pod: "b", Quarantine: time.Minute}, `"id"=2 "lost"="b" "quarantine"="1m0s"`},
		"a restore":                     {event.Restored{Epoch: 7}, `"msg"="assignment restored" "epoch"=7`},
		"damage":                        {event.Damaged{Reason: "ReceiptDamaged", Detail: "x"}, `"msg"="damage repaired" "reason"="ReceiptDamaged" "detail"="x"`},
		"an undo":                       {event.Damaged{Reason: "AssignmentRolledBack", Detail: "x", Expected: true}, `"msg"="assignment brought up to date" "reason"="AssignmentRolledBack" "detail"="x"`},
		"restores undone":               {event.Undone{Writer: "w", Longest: time.Minute}, `"writer"="w" "longest"="1m0s"`},
		"a plan":                        {event.Planned{}, ""},
		"partitions with the slot":      {event.Taken{ID: 2, Epoch: 7, Partitions: "0-3"}, `"msg"="partitions taken" "id"=2 "partitions"="0-3" "epoch"=7`},
		"more partitions":               {event.Grown{ID: 2, Epoch: 7, Partitions: "4"}, `"msg"="partitions taken" "id"=2 "partitions"="4" "epoch"=7`},
		"partitions that are to stop":   {event.Revoked{ID: 2, Partitions: "4", Stop: 3}, `"msg"="the work on partitions is to stop: another id is to have them" "id"=2 "partitions"="4" "stop"=3`},
		"partitions yielded":            {event.Yielded{ID: 2, Partitions: "4"}, `"msg"="partitions yielded" "id"=2 "partitions"="4"`},
		"partitions lost":               {event.PartitionsLost{ID: 2, Partitions: "4", Stop: 3}, `"msg"="partitions lost: the map does not give them to this id any more" "id"=2 "partitions"="4" "stop"=3`},
		"partitions moved":              {event.PartitionsMoved{Epoch: 7, Given: 3, Taken: 2}, `"msg"="this pod's write moved partitions" "epoch"=7 "given"=3 "taken"=2`},
		"partitions in force": {
			event.PartitionsInForce{New: event.Division{Count: 64, Strategy: "sticky"}},
			`"msg"="what the user wants about partitions is in force" "old"="no partitions" "new"="64 partitions by strategy sticky"`,
		},
		"partitions failed over": {
			event.FailedOver{From: []event.Failover{{ID: 1, Partitions: "0-3", To: []int{0, 2}, After: time.Minute}}},
			`"msg"="other ids got the partitions of an id that no pod holds" "id"=1 "partitions"="0-3" "to"=[0 2] "after"="1m0s"`,
		},
		"partitions held up":           {event.PartitionsHeldUp{Reason: "PartitionsWithheld", Detail: "x", Unannounced: true}, `"msg"="partitions are held up" "reason"="PartitionsWithheld" "detail"="x"`},
		"a slot taken, which moves it": {event.Taken{ID: 2, Epoch: 7}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			line := ""
			logged{funcr.New(func(_, s string) { line += s }, funcr.Options{Verbosity: 1})}.Observe(tc.event)
			if (tc.want == "") != (line == "") || !strings.Contains(line, tc.want) {
				t.Errorf("it says %s\nwant %s", line, tc.want)
			}
		})
	}
}
