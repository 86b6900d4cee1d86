package store

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestTrust(t *testing.T) {
	present := assignment.Record{Present: true}
	sealed := assignment.Record{Present: true, Sealed: true}
	later := assignment.Record{Present: true, Newer: 2}
	elsewhere := assignment.Record{Present: true, Sealed: true, OtherKey: "team.example/ids", State: assignment.State{Slots: assignment.Slots{0: "a"}}}
	empty := assignment.Record{Present: true, Sealed: true, OtherKey: "team.example/ids"}
	for name, tc := range map[string]struct {
		record     assignment.Record
		us, nobody bool
		want       assignment.Trust
	}{
		"nothing is there":                                {assignment.Record{}, false, true, assignment.Absent},
		"nothing of what we wrote is there any more":      {assignment.Record{}, true, false, assignment.Absent},
		"we wrote it":                                     {sealed, true, false, assignment.Clean},
		"somebody else copied it":                         {sealed, false, false, assignment.Foreign},
		"nobody tracks it":                                {sealed, false, true, assignment.Untracked},
		"we wrote the seal, and something else changed":   {present, true, false, assignment.Foreign},
		"it does not fit, and nobody tracks it":           {present, false, true, assignment.Foreign},
		"we wrote a later format":                         {later, true, false, assignment.Unreadable},
		"a later format, which nobody tracks":             {later, false, true, assignment.Unreadable},
		"somebody else wrote what looks like a later one": {later, false, false, assignment.Foreign},
		"we wrote it under another key":                   {elsewhere, true, false, assignment.Unreadable},
		"somebody else copied it to another key":          {elsewhere, false, false, assignment.Foreign},
		"nobody has a slot under another key":             {empty, true, false, assignment.Clean},
		"nobody tracks who wrote that":                    {empty, false, true, assignment.Untracked},
		"somebody else wrote that":                        {empty, false, false, assignment.Foreign},
	} {
		if got := trust(tc.record, tc.us, tc.nobody); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestTrustInPartitions(t *testing.T) {
	sealed := assignment.PartitionRecord{Present: true, Sealed: true}
	later := assignment.PartitionRecord{Present: true, Newer: 2}
	for name, tc := range map[string]struct {
		record     assignment.PartitionRecord
		us, nobody bool
		want       assignment.Trust
	}{
		"nothing is there":                       {assignment.PartitionRecord{}, false, true, assignment.Absent},
		"we wrote it":                            {sealed, true, false, assignment.Clean},
		"somebody else brought it back":          {sealed, false, false, assignment.Foreign},
		"nobody tracks it":                       {sealed, false, true, assignment.Untracked},
		"it does not fit":                        {assignment.PartitionRecord{Present: true}, true, false, assignment.Foreign},
		"it does not fit, and nobody tracks it":  {assignment.PartitionRecord{Present: true}, false, true, assignment.Foreign},
		"we wrote a later format":                {later, true, false, assignment.Unreadable},
		"a later format, which nobody tracks":    {later, false, true, assignment.Unreadable},
		"somebody else wrote what looks like it": {later, false, false, assignment.Foreign},
	} {
		if got := partitionTrust(tc.record, tc.us, tc.nobody); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A row of partitions that is clean names ids, and who has them is in the map.
func TestPartitionsAreAsCleanAsTheMap(t *testing.T) {
	for trust, want := range map[assignment.Trust]bool{assignment.Clean: true, assignment.Untracked: false, assignment.Foreign: false, assignment.Absent: false} {
		if o := (Owner{Trust: trust, PartitionTrust: assignment.Clean}); o.PartitionsClean() != want {
			t.Errorf("a clean row beside a map that is %s: %t", trust, !want)
		}
		if o := (Owner{Trust: assignment.Clean, PartitionTrust: trust}); o.PartitionsClean() != want {
			t.Errorf("a row that is %s beside a clean map: %t", trust, !want)
		}
	}
}

// What a map says of a slot that a process took from epoch 7 with a fence-after of a minute.
func TestWhatAnOwnerSaysOfAHolding(t *testing.T) {
	const me, sibling = "worker-a", "worker-b"
	mine := Holding{ID: 3, Pod: me, UID: types.UID("me"), Token: 7, FenceAfter: time.Minute}
	for name, tc := range map[string]struct {
		trust  assignment.Trust
		holder string // of slot 3
		uid    string // its pod's
		epoch  int64
		fence  time.Duration

		confirms, refutes bool
	}{
		"a clean map confirms":                            {assignment.Clean, me, "me", 7, time.Minute, true, false},
		"also with an epoch that somebody lowered":        {assignment.Clean, me, "me", 1, time.Minute, true, false},
		"not if planners wait for less":                   {assignment.Clean, me, "me", 7, time.Second, false, false},
		"nor for a pod that had the name before":          {assignment.Clean, me, "older", 7, time.Minute, false, true},
		"one with another pod refutes":                    {assignment.Clean, sibling, "theirs", 8, time.Minute, false, true},
		"one without an entry does neither":               {assignment.Clean, "", "", 8, time.Minute, false, false},
		"an untracked map confirms from its epoch on":     {assignment.Untracked, me, "me", 7, time.Minute, true, false},
		"an older untracked one does not":                 {assignment.Untracked, me, "me", 6, time.Minute, false, false},
		"an untracked one refutes if it is newer":         {assignment.Untracked, sibling, "theirs", 8, time.Minute, false, true},
		"not with the epoch that the slot was taken from": {assignment.Untracked, sibling, "theirs", 7, time.Minute, false, false},
		"a foreign map confirms nothing":                  {assignment.Foreign, me, "me", 8, time.Minute, false, false},
		"and refutes nothing":                             {assignment.Foreign, sibling, "theirs", 8, time.Minute, false, false},
		"nor does one that cannot be read":                {assignment.Unreadable, sibling, "theirs", 8, time.Minute, false, false},
		"nor none":                                        {assignment.Absent, "", "", 0, 0, false, false},
	} {
		o := Owner{Trust: tc.trust}
		o.Record.State.Epoch, o.Record.State.FenceAfter = tc.epoch, tc.fence
		if tc.holder != "" {
			o.Record.State.Slots = assignment.Slots{3: tc.holder}
			o.Record.State.UIDs = assignment.Slots{3: assignment.ShortUID(tc.uid)}
		}
		if confirms, refutes := o.Confirms(mine), o.Refutes(mine); confirms != tc.confirms || refutes != tc.refutes {
			t.Errorf("%s: confirms %t, refutes %t", name, confirms, refutes)
		}
	}
}
