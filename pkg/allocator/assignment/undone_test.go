package assignment

import "testing"

func TestUndone(t *testing.T) {
	slots := func(s Slots) State { return State{Slots: s} }
	asks := func(h Slots) State { return State{Slots: Slots{0: "a"}, Handover: h} }
	for name, tc := range map[string]struct {
		was, is, next State
		want          bool
	}{
		"nothing was written":                   {State{}, slots(Slots{0: "x"}), slots(Slots{0: "a"}), false},
		"nothing has changed":                   {slots(Slots{0: "a"}), slots(Slots{0: "a"}), slots(Slots{0: "a"}), false},
		"a new pod":                             {slots(Slots{0: "a"}), slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "b"}), false},
		"a pod has gone":                        {slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "a"}), false},
		"others serve pods, too":                {slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "a", 1: "b", 2: "c"}), false},
		"others make room for a pod":            {slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "c"}), false},
		"an entry was removed":                  {slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "b"}), true},
		"all were, and they come back in turn":  {slots(Slots{0: "a", 1: "b"}), State{}, slots(Slots{0: "b", 1: "a"}), true},
		"two were changed for each other":       {slots(Slots{0: "a", 1: "b"}), slots(Slots{0: "b", 1: "a"}), slots(Slots{0: "a", 1: "b"}), true},
		"a pod that is not there was named":     {slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "x"}), slots(Slots{0: "a"}), true},
		"one that is not there was, and stays":  {slots(Slots{0: "a"}), slots(Slots{0: "a", 1: "x"}), slots(Slots{0: "a", 1: "x", 2: "b"}), false},
		"a request was removed":                 {asks(Slots{0: "b"}), asks(nil), asks(Slots{0: "b"}), true},
		"others ask":                            {asks(nil), asks(Slots{0: "b"}), asks(Slots{0: "b", 1: "c"}), false},
		"what others asked for is given":        {asks(nil), asks(Slots{1: "b"}), slots(Slots{0: "a", 1: "b"}), false},
		"others ask for a pod that has a slot":  {asks(nil), asks(Slots{1: "a"}), asks(nil), true},
		"others ask for what the pod has":       {asks(nil), asks(Slots{0: "a"}), asks(nil), true},
		"what was given is asked for again":     {slots(Slots{0: "a"}), State{Handover: Slots{0: "a"}}, slots(Slots{0: "a"}), true},
		"a pod that asks gets another slot":     {asks(nil), asks(Slots{1: "b"}), slots(Slots{0: "a", 2: "b"}), true},
		"a request is for the slot of the name": {asks(Slots{0: "b"}), asks(Slots{1: "b"}), asks(Slots{0: "b"}), true},
	} {
		if got := tc.was.Undone(tc.is, tc.next); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
