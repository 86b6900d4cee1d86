package duty_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// share is slot 1 with these of eight partitions.
func share(partitions ...int) receipt.Share {
	return receipt.Share{ID: 1, Of: 8, Partitions: placement.Of(partitions...)}
}

func locks(s receipt.Share) duty.Lock { return duty.Lock{State: receipt.Locks, Share: s} }

// held is such a lock under which the pod holds the slot and these partitions.
func held(s receipt.Share, partitions ...int) duty.Lock {
	l := locks(s)
	l.Held = duty.Held{Slot: true, Partitions: placement.Of(partitions...)}
	return l
}

func waits() duty.Lock { return duty.Lock{State: receipt.Waits, Share: receipt.Nothing()} }

func gaveUp() duty.Lock { return duty.Lock{State: receipt.GaveUp, Share: receipt.Nothing()} }

func none() duty.Lock { return duty.Lock{Share: receipt.Nothing()} }

// left is the lock state of a process that starts where work of an earlier one may go on.
func left(s receipt.Share) duty.LockState { return duty.Start(false, s) }

// stopped is the lock state when all work has stopped that was told to.
func stopped(t duty.LockState, keep receipt.Share) duty.LockState {
	t = t.Told(keep)
	return t.Stopped(t.Stopping)
}

// idle is the lock state of a process whose pod has this receipt, and that found no work under way.
func idle(lock duty.Lock) duty.LockState {
	return left(receipt.Nothing()).Read(lock).Sure()
}

// holds is the lock state of a process that works on all that its receipt locks.
func holds(s receipt.Share) duty.LockState {
	return idle(none()).Wrote(locks(s)).Saw(duty.Others{}).Begun(s)
}

// strictly is holds in strict mode.
func strictly(s receipt.Share) duty.LockState {
	return duty.Start(true, receipt.Nothing()).Read(none()).HasLease(s).Wrote(locks(s)).Saw(duty.Others{}).SawLeases(duty.Others{}).Begun(s)
}

func TestStep(t *testing.T) {
	nothing := duty.Desired{Propose: receipt.Nothing()}
	proposed := func(s receipt.Share) duty.Desired { return duty.Desired{Propose: s} }
	give := duty.Desired{Give: true, Propose: share(4)}
	resumed := left(share(4)).Read(locks(share(4)))
	slot := duty.Others{Slot: true}
	part := func(partitions ...int) duty.Part { return duty.Part{Partitions: placement.Of(partitions...)} }
	hangs := holds(share(4, 6)).Told(share(4))
	oneOfTwo := idle(none()).Wrote(locks(share(4, 5))).Saw(duty.Others{Partitions: placement.Of(5)})
	foundMore := left(share(4, 5)).Read(locks(share(4)))
	leftBoth := left(share(4, 5)).Read(locks(share(4, 5))).Wrote(locks(share(4, 5)))
	leftMore := foundMore.Wrote(locks(share(4))).Saw(duty.Others{}).Told(share(4)).Wrote(locks(share(4, 6))).Saw(duty.Others{})
	for name, c := range map[string]struct {
		state   duty.LockState
		desired duty.Desired
		want    duty.Duty
	}{
		"it does not know its receipt":                 {left(receipt.Nothing()), proposed(share()), duty.Duty{Do: duty.ReadPod}},
		"an earlier process may have left work":        {left(share(4)).Read(none()), nothing, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"an earlier process may have left more":        {foundMore, nothing, duty.Duty{Do: duty.Write, Lock: locks(share(4))}},
		"it may have left more, and no other locks it": {foundMore.Wrote(locks(share(4))).Saw(duty.Others{}), nothing, duty.Duty{Do: duty.Stop, Share: share(4)}},
		"nothing is proposed to it":                    {idle(none()), nothing, duty.Duty{Why: duty.NoSlot}},
		"nothing is proposed, and it shows that it is": {idle(none()), duty.Desired{Propose: receipt.Nothing(), Show: true}, duty.Duty{Do: duty.Write, Lock: waits()}},
		"a slot is proposed to it":                     {idle(none()), proposed(share(4)), duty.Duty{Do: duty.Write, Lock: locks(share(4))}},
		"a slot is proposed to a waiter":               {idle(waits()), proposed(share(4)), duty.Duty{Do: duty.Write, Lock: locks(share(4))}},
		"a slot is proposed to one that gave up":       {idle(gaveUp()), proposed(share()), duty.Duty{Why: duty.NoSlot}},
		"one that gave up may wait again": {
			idle(gaveUp()), duty.Desired{Propose: receipt.Nothing(), WaitAgain: true}, duty.Duty{Do: duty.Write, Lock: waits()},
		},
		"its receipt is written":       {idle(none()).Wrote(locks(share())), nothing, duty.Duty{Do: duty.List}},
		"no other pod locks that":      {idle(none()).Wrote(locks(share(4))).Saw(duty.Others{}), nothing, duty.Duty{Do: duty.Begin, Share: share(4)}},
		"another pod locks the slot":   {idle(none()).Wrote(locks(share())).Saw(slot), nothing, duty.Duty{Do: duty.Write, Lock: waits()}},
		"another locks one of several": {oneOfTwo, nothing, duty.Duty{Do: duty.Begin, Share: share(4)}},
		"and it works on the rest":     {oneOfTwo.Begun(share(4)), nothing, duty.Duty{Do: duty.Write, Lock: held(share(4), 4)}},
		"and it has let go of that":    {oneOfTwo.Begun(share(4)).Wrote(held(share(4), 4)), nothing, duty.Duty{}},
		"which it is to take again":    {oneOfTwo.Wrote(locks(share(4))), proposed(share(4, 5)), duty.Duty{Do: duty.Begin, Share: share(4)}},
		"its write got no answer":      {holds(share(4)).Lost(), nothing, duty.Duty{Do: duty.ReadPod}},
		"it has what it should have":   {holds(share(4)), proposed(share(4)), duty.Duty{}},
		"the map names another pod":    {holds(share(4)), nothing, duty.Duty{}},
		"more partitions are proposed": {holds(share(4)), proposed(share(4, 5)), duty.Duty{Do: duty.Write, Lock: held(share(4, 5), 4)}},
		"a partition goes to another id": {
			holds(share(4, 5)), duty.Desired{Propose: share(4, 5), Yield: placement.Of(5)}, duty.Duty{Do: duty.Stop, Share: share(4)},
		},
		"the work on a partition that goes has stopped": {
			stopped(holds(share(4, 5)), share(4)), duty.Desired{Propose: share(4, 5), Yield: placement.Of(5)}, duty.Duty{Do: duty.Write, Lock: held(share(4), 4)},
		},
		"one of two that go has stopped": {
			holds(share(4, 5, 6)).Told(share(4)).Stopped(part(5)), duty.Desired{Yield: placement.Of(5, 6)}, duty.Duty{Do: duty.Write, Lock: held(share(4, 6), 4, 6)},
		},
		"the other one hangs, and more are proposed": {
			hangs, duty.Desired{Propose: share(4, 7), Yield: placement.Of(6)}, duty.Duty{Do: duty.Write, Lock: held(share(4, 6, 7), 4, 6)},
		},
		"it hangs, and others are confirmed": {
			hangs.Wrote(locks(share(4, 6, 7))).Saw(duty.Others{}), duty.Desired{Propose: share(4, 7), Yield: placement.Of(6)}, duty.Duty{Do: duty.Begin, Share: share(4, 6, 7)},
		},
		"it hangs, and one more is to go":    {hangs, duty.Desired{Propose: share(), Yield: placement.Of(4, 6)}, duty.Duty{Do: duty.Stop, Share: receipt.Share{ID: 1, Of: 8}}},
		"it hangs, and the slot is to go":    {hangs, give, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"it hangs, and need not go any more": {hangs, proposed(share(4, 6)), duty.Duty{Do: duty.CallOff, Part: part(6)}},
		"it hangs, and nothing else changes": {hangs, duty.Desired{Propose: share(4), Yield: placement.Of(6)}, duty.Duty{Why: duty.WorkStops}},
		"it hangs, and divides no more": {
			hangs, proposed(receipt.Share{ID: 1}), duty.Duty{Do: duty.Stop, Share: receipt.Share{ID: 1}},
		},
		"it hangs, and is the only one of an id that divides no more": {
			stopped(hangs, receipt.Share{ID: 1}).Begun(share(6)).Told(share()), proposed(receipt.Share{ID: 1}),
			duty.Duty{Do: duty.Write, Lock: held(receipt.Share{ID: 1, Partitions: placement.Of(6)}, 6)},
		},
		"the slot goes, and one that another id is to have has stopped": {
			holds(share(4, 5)).Told(receipt.Nothing()).Stopped(part(5)), duty.Desired{Give: true, Yield: placement.Of(4, 5)}, duty.Duty{Do: duty.Write, Lock: held(share(4), 4)},
		},
		"the slot goes, and one that its next holder is to have has stopped": {
			holds(share(4, 5)).Told(receipt.Nothing()).Stopped(part(5)), give, duty.Duty{Why: duty.WorkStops},
		},
		"what went is proposed still":            {holds(share(4)), duty.Desired{Propose: share(4, 5), Yield: placement.Of(5)}, duty.Duty{}},
		"it is to divide no partitions any more": {holds(share(4)), proposed(receipt.Share{ID: 1}), duty.Duty{Do: duty.Stop, Share: receipt.Share{ID: 1}}},
		"it is to give":                          {holds(share(4)), give, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"its work is stopping":                   {holds(share()).Told(receipt.Nothing()), give, duty.Duty{Why: duty.WorkStops}},
		"its work need not stop any more":        {holds(share()).Told(receipt.Nothing()), nothing, duty.Duty{Do: duty.CallOff, Part: duty.Part{All: true}}},
		"its work knows that it need not stop":   {holds(share()).Told(receipt.Nothing()).Recalled(duty.Part{All: true}), nothing, duty.Duty{Why: duty.WorkStops}},
		"an earlier process left more, and others are confirmed": {
			leftMore, proposed(share(4, 6)), duty.Duty{Do: duty.Begin, Share: share(4, 6)},
		},
		"an earlier process left more, and others have begun": {
			leftMore.Begun(share(4, 6)), proposed(share(4, 6)), duty.Duty{Why: duty.WorkStops},
		},
		"an earlier process left more, which is proposed": {
			leftMore.Begun(share(4, 6)), proposed(share(4, 5, 6)), duty.Duty{Do: duty.Write, Lock: locks(share(4, 5, 6))},
		},
		"an earlier process left more, which another pod locks": {
			leftMore.Wrote(locks(share(4, 5, 6))).Saw(duty.Others{Partitions: placement.Of(5)}), proposed(share(4, 5, 6)),
			duty.Duty{Do: duty.Begin, Share: share(4, 5, 6)}, // it has not stopped
		},
		"an earlier process left what another pod locks, and more is confirmed": {
			leftBoth.Saw(duty.Others{Partitions: placement.Of(5)}).Sure().Told(share(4)).Wrote(locks(share(4, 5, 6))).Saw(duty.Others{Partitions: placement.Of(5)}),
			proposed(share(4, 5, 6)), duty.Duty{Do: duty.Begin, Share: share(4, 5, 6)}, // it is to stop still
		},
		"another pod locks the slot of an earlier process, and a part of the work has stopped": {
			leftBoth.Saw(slot).Sure().Told(receipt.Nothing()).Stopped(part(5)).Wrote(locks(share(4))).Recalled(duty.Part{All: true}).Resumed(duty.Part{All: true}),
			duty.Desired{Propose: share(4), Yield: placement.Of(5)}, duty.Duty{Do: duty.List},
		},
		"its receipt was changed": {idle(none()).Read(duty.Lock{State: receipt.Unreadable, Share: receipt.Nothing()}), nothing, duty.Duty{Do: duty.Write, Lock: waits()}},
		"strict, and some come and others go": {
			strictly(share(4)), duty.Desired{Propose: share(5), Yield: placement.Of(4)}, duty.Duty{Do: duty.Stop, Share: share()},
		},
		"strict, and some came and others went": {
			stopped(strictly(share(4)), share()), duty.Desired{Propose: share(5), Yield: placement.Of(4)}, duty.Duty{Do: duty.Secure, Share: share(4, 5)},
		},
		"it gives, and its work has stopped": {stopped(holds(share()), receipt.Nothing()), give, duty.Duty{Do: duty.Write, Lock: gaveUp()}},
		"its work does not stop":             {holds(share()).Told(receipt.Nothing()).Resumed(duty.Part{All: true}), nothing, duty.Duty{}},
		"it need not give any more":          {stopped(holds(share()), receipt.Nothing()), nothing, duty.Duty{Do: duty.Begin, Share: share()}},
		"an earlier process left a lock":     {resumed, nothing, duty.Duty{Do: duty.Write, Lock: locks(share(4))}},
		"another receipt may be withdrawn":   {resumed.Wrote(locks(share(4))).Saw(slot), nothing, duty.Duty{Do: duty.List}},
		"another receipt stays":              {resumed.Wrote(locks(share(4))).Saw(slot).Sure(), nothing, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"its receipt was removed":            {holds(share(4)).Lost().Read(none()), nothing, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"strict, and a slot is proposed":     {duty.Start(true, receipt.Nothing()).Read(none()), proposed(share()), duty.Duty{Do: duty.Secure, Share: share()}},
		"strict, and the others are listed":  {strictly(share(4)).Wrote(locks(share(4))).Saw(duty.Others{}), nothing, duty.Duty{Do: duty.Survey}},
		"strict, and it should have more":    {strictly(share(4)), proposed(share(4, 5)), duty.Duty{Do: duty.Secure, Share: share(4, 5)}},
		"strict, and its work has stopped":   {stopped(strictly(share()), receipt.Nothing()), give, duty.Duty{Do: duty.Secure, Share: receipt.Nothing()}},
		"strict, and its Lease is let go":    {stopped(strictly(share()), receipt.Nothing()).HasLease(receipt.Nothing()), give, duty.Duty{Do: duty.Write, Lock: gaveUp()}},
		"strict, and it need not give any more": {
			stopped(strictly(share()), receipt.Nothing()).HasLease(receipt.Nothing()).HasLease(share()), nothing, duty.Duty{Do: duty.Write, Lock: locks(share())},
		},
		"its time is over":                       {strictly(share()).Fenced(), nothing, duty.Duty{Do: duty.Secure, Share: share()}},
		"its time is over, and another pod came": {strictly(share()).Fenced().LeaseTaken(), nothing, duty.Duty{Do: duty.Write, Lock: waits()}},
		"another pod has the Lease of its lock":  {duty.Start(true, share()).Read(locks(share())).LeaseTaken(), nothing, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"it noted what another Lease has":        {duty.Start(true, share()).Read(held(share())).LeaseTaken(), nothing, duty.Duty{Do: duty.Secure, Share: share()}},
		"it noted what another Lease keeps":      {duty.Start(true, share()).Read(held(share())).Sure().LeaseTaken(), nothing, duty.Duty{Do: duty.Stop, Share: receipt.Nothing()}},
		"its Lease says more than its receipt":   {strictly(share(4)).HasLease(share(4, 5)), nothing, duty.Duty{Do: duty.Secure, Share: share(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := duty.Step(c.state, c.desired); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("next is %v, want %v", got, c.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	soon := now.Add(time.Second)
	late := soon.Add(time.Second)
	view := func(id int) duty.View { return duty.View{Count: 3, Propose: receipt.Share{ID: id}} }
	held := receipt.Share{ID: 1}
	for name, c := range map[string]struct {
		state duty.LockState
		view  duty.View
		known duty.Known
		want  duty.Do
		at    time.Time
	}{
		"a slot is proposed":     {idle(none()), view(2), duty.Known{}, duty.Write, time.Time{}},
		"the owner is not known": {idle(none()), view(2), duty.Known{Unseen: true}, duty.ReadOwner, time.Time{}},
		"another pod had partitions just now": {
			holds(share(4)), duty.View{Count: 3, Propose: share(4, 5)}, duty.Known{Again: soon}, duty.Rest, soon,
		},
		"another pod had the slot just now":    {idle(none()), view(2), duty.Known{Again: soon}, duty.Rest, soon},
		"a pod asks for the slot":              {holds(held), duty.View{Count: 3, Propose: held, Asks: true}, duty.Known{}, duty.Judge, time.Time{}},
		"a slot at the count is proposed":      {idle(none()), view(3), duty.Known{}, duty.Rest, time.Time{}},
		"the last request was in vain":         {idle(none()), view(2), duty.Known{Retry: soon}, duty.Rest, soon},
		"a plan may help":                      {idle(none()), view(receipt.NoID), duty.Known{Turn: now}, duty.Plan, time.Time{}},
		"a plan may help, and others go first": {idle(none()), view(receipt.NoID), duty.Known{Turn: soon}, duty.Rest, soon},
		"a plan may help after a wait":         {idle(none()), view(receipt.NoID), duty.Known{Turn: soon, Retry: late}, duty.Rest, soon},
		"a plan came to nothing just now":      {idle(none()), view(receipt.NoID), duty.Known{Turn: now, Retry: late}, duty.Rest, late},
		"a plan came to nothing":               {idle(none()), view(receipt.NoID), duty.Known{Show: true}, duty.Write, time.Time{}},
		"its slot is above the count":          {holds(receipt.Share{ID: 3}), view(3), duty.Known{}, duty.Stop, time.Time{}},
		"its slot is above the count, and a partition that goes to another id has stopped": {
			holds(share(4, 5)).Told(receipt.Nothing()).Stopped(duty.Part{Partitions: placement.Of(5)}), duty.View{Count: 1, Yield: placement.Of(4, 5)}, duty.Known{},
			duty.Write, time.Time{},
		},
		"its work did not stop just now":       {holds(receipt.Share{ID: 3}), view(3), duty.Known{Refused: soon, Kept: duty.Part{All: true}}, duty.Rest, soon},
		"its slot seems to be above the count": {holds(share(4)), duty.View{Count: 1, Yield: placement.Of(4)}, duty.Known{Unseen: true}, duty.ReadOwner, time.Time{}},
		"a part of it did not stop just now":   {holds(receipt.Share{ID: 3}), view(3), duty.Known{Refused: soon, Kept: duty.Part{Partitions: placement.Of(4)}}, duty.Stop, time.Time{}},
		"the other part is to stop": {
			holds(share(4, 5)), duty.View{Count: 3, Yield: placement.Of(4, 5)}, duty.Known{Refused: soon, Kept: duty.Part{Partitions: placement.Of(4)}}, duty.Stop, time.Time{},
		},
		"the API server is away":          {holds(share(4)), duty.View{Count: 3, Yield: placement.Of(4), Asked: true, Propose: share(4)}, duty.Known{Away: true}, duty.Rest, time.Time{}},
		"it ends, and no server hears it": {holds(share(4)), duty.View{Count: 1}, duty.Known{Away: true, Ends: true}, duty.Stop, time.Time{}},
		"it is away, and one had to go":   {holds(share(4)).Told(share()), duty.View{Count: 3, Yield: placement.Of(4), Propose: share(4)}, duty.Known{Away: true}, duty.CallOff, time.Time{}},
		"it is away, and one has stopped": {
			stopped(holds(share(4)), share()), duty.View{Count: 3, Yield: placement.Of(4), Propose: share(4)}, duty.Known{Away: true}, duty.Begin, time.Time{},
		},
		"a newer pod asks":         {holds(held), duty.View{Count: 3, Propose: held, Asked: true}, duty.Known{}, duty.Stop, time.Time{}},
		"the process ends":         {holds(held), view(1), duty.Known{Ends: true, Refused: soon}, duty.Stop, time.Time{}},
		"its owner is gone":        {holds(held), duty.View{Gone: true, Count: 3, Propose: held}, duty.Known{}, duty.Rest, time.Time{}},
		"its owner is another one": {holds(held), duty.View{Gone: true, Leaves: true, Count: 3, Propose: held}, duty.Known{}, duty.Stop, time.Time{}},
		"its work did not stop, another owner": {
			holds(held), duty.View{Gone: true, Leaves: true, Count: 3, Propose: held}, duty.Known{Refused: soon, Kept: duty.Part{All: true}}, duty.Rest, soon,
		},
		"its owner is gone, and it waits":                                 {idle(waits()), duty.View{Gone: true, Count: 3, Propose: held}, duty.Known{Turn: now}, duty.Rest, time.Time{}},
		"it gave up, and is named still":                                  {idle(gaveUp()), view(1), duty.Known{Turn: now}, duty.Plan, time.Time{}},
		"it gave up, and is not named":                                    {idle(gaveUp()), view(receipt.NoID), duty.Known{}, duty.Write, time.Time{}},
		"it gave up for good":                                             {idle(gaveUp()), view(receipt.NoID), duty.Known{Ends: true}, duty.Rest, time.Time{}},
		"it ends while it waits, and is named for a slot above the count": {idle(waits()), view(3), duty.Known{Ends: true, Turn: now}, duty.Write, time.Time{}},
		"it ends while it waits, and takes later":                         {idle(waits()), view(1), duty.Known{Ends: true, Again: soon}, duty.Write, time.Time{}},
		"it works, and the map is wrong":                                  {holds(held), view(receipt.NoID), duty.Known{Turn: soon}, duty.Rest, soon},
	} {
		t.Run(name, func(t *testing.T) {
			if got, at := duty.Next(c.state, c.view, c.known, now); got.Do != c.want || !at.Equal(c.at) {
				t.Errorf("next is %v at %v, want %v at %v", got, at, c.want, c.at)
			}
		})
	}
}
