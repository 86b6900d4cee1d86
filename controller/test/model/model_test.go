package model

import (
	"flag"
	"strings"
	"testing"
)

// deep has more and larger worlds explored.
var deep = flag.Bool("deep", false, "explore larger worlds, for minutes") //nolint:gochecknoglobals // a flag

// check explores worlds, and returns the number of their states.
func check(t *testing.T, worlds map[string]budget) (states int) {
	t.Helper()
	for name, b := range worlds {
		t.Run(name, func(t *testing.T) {
			r := search(b)
			if r.two != nil {
				t.Errorf("two run under one id after\n%s", strings.Join(r.two, "\n"))
			}
			if r.stuck != nil {
				t.Errorf("a state that does not come to rest as it should:\n%s", strings.Join(r.stuck, "\n"))
			}
			t.Logf("%d states, in %d of them two run until it is heard of", r.states, r.moments)
			states += r.states
		})
	}
	return states
}

func TestNoTwoRunUnderOneID(t *testing.T) {
	small := map[string]budget{
		"two pods":               {pods: 2, slots: 1, controllers: 1, writes: 3, crashes: 1, unanswered: 1, deletions: 1, wild: true},
		"copied pods":            {pods: 2, slots: 2, controllers: 1, writes: 3, crashes: 1, unanswered: 1, copied: true},
		"two pods of a name":     {pods: 2, slots: 1, controllers: 1, writes: 3, crashes: 1, unanswered: 1, deletions: 1, sameNames: true},
		"three pods":             {pods: 3, slots: 1, controllers: 1, writes: 2, unanswered: 1, wild: true},
		"two leaders":            {pods: 2, slots: 1, controllers: 2, writes: 3},
		"two leaders, any plan":  {pods: 2, slots: 1, controllers: 2, writes: 2, unanswered: 1, wild: true},
		"two slots":              {pods: 2, slots: 2, controllers: 1, writes: 3, unanswered: 1, wild: true},
		"two slots, two leaders": {pods: 2, slots: 2, controllers: 2, writes: 2, crashes: 1},
		"a peer":                 {pods: 2, slots: 1, controllers: 1, peer: true, writes: 3, crashes: 1, unanswered: 1},
		"a peer, two leaders":    {pods: 2, slots: 1, controllers: 2, peer: true, writes: 2, crashes: 1},
		"two pods and a peer":    {pods: 3, slots: 1, controllers: 1, peer: true, writes: 2, crashes: 1},
		"gates go by hand":       {pods: 2, slots: 1, controllers: 1, writes: 3, unanswered: 1, deletions: 1, opened: 1},
		"a Deployment is scaled": {pods: 2, slots: 3, controllers: 1, writes: 3, deployment: true},
		"an agent":               {pods: 2, slots: 1, controllers: 1, agents: 1, writes: 2, crashes: 1, unanswered: 1},
		"an agent, two leaders":  {pods: 2, slots: 1, controllers: 2, agents: 1, writes: 2},
		"an agent is replaced":   {pods: 2, slots: 1, controllers: 1, agents: 1, writes: 3, deletions: 1},
		"two agents":             {pods: 2, slots: 1, controllers: 1, agents: 2, writes: 2},
		"two agents, two slots":  {pods: 2, slots: 2, controllers: 1, agents: 2, writes: 2},
		"an agent and a peer":    {pods: 2, slots: 1, controllers: 1, agents: 1, peer: true, writes: 2, crashes: 1},
		"one of each":            {pods: 3, slots: 1, controllers: 1, agents: 1, peer: true, writes: 2},
	}
	large := map[string]budget{
		"two pods":               {pods: 2, slots: 1, controllers: 1, writes: 4, crashes: 1, unanswered: 1, deletions: 1, wild: true},
		"three pods":             {pods: 3, slots: 1, controllers: 1, writes: 3, crashes: 1, unanswered: 1, wild: true},
		"three pods, two slots":  {pods: 3, slots: 2, controllers: 1, writes: 2, unanswered: 1},
		"two leaders":            {pods: 2, slots: 1, controllers: 2, writes: 3, crashes: 1, unanswered: 1},
		"two leaders, any plan":  {pods: 2, slots: 1, controllers: 2, writes: 3, unanswered: 1, wild: true},
		"two slots, two leaders": {pods: 2, slots: 2, controllers: 2, writes: 3},
		"a peer":                 {pods: 2, slots: 1, controllers: 1, peer: true, writes: 4, crashes: 1, unanswered: 1},
		"a peer is replaced":     {pods: 2, slots: 1, controllers: 1, peer: true, writes: 3, unanswered: 1, deletions: 1},
		"a peer, two slots":      {pods: 2, slots: 2, controllers: 1, peer: true, writes: 3, unanswered: 1},
		"a peer, two leaders":    {pods: 2, slots: 1, controllers: 2, peer: true, writes: 2, unanswered: 1, crashes: 1},
		"two pods and a peer":    {pods: 3, slots: 1, controllers: 1, peer: true, writes: 3, unanswered: 1},
		"gates go by hand":       {pods: 2, slots: 2, controllers: 1, writes: 4, unanswered: 1, opened: 1},
		"a Deployment is scaled": {pods: 2, slots: 3, controllers: 1, writes: 4, unanswered: 1, deployment: true},
		"an agent":               {pods: 2, slots: 1, controllers: 1, agents: 1, writes: 4, crashes: 1, unanswered: 1},
		"an agent, two leaders":  {pods: 2, slots: 1, controllers: 2, agents: 1, writes: 1, crashes: 1, unanswered: 1},
		"an agent is replaced":   {pods: 2, slots: 1, controllers: 1, agents: 1, writes: 2, crashes: 1, unanswered: 1, deletions: 1},
		"two agents":             {pods: 2, slots: 1, controllers: 1, agents: 2, writes: 2, crashes: 1},
		"two agents, two slots":  {pods: 2, slots: 2, controllers: 1, agents: 2, writes: 1, unanswered: 1},
		"an agent and a peer":    {pods: 2, slots: 1, controllers: 1, agents: 1, peer: true, writes: 4, crashes: 1},
		"one of each":            {pods: 3, slots: 1, controllers: 1, agents: 1, peer: true, writes: 2, crashes: 1},
		"three agents":           {pods: 3, slots: 1, controllers: 1, agents: 3, writes: 1, crashes: 1},
	}
	worlds := small
	if *deep {
		worlds = large
	}
	t.Logf("%d states in all", check(t, worlds))
}

// To remove the receipt of a live pod, or to give a pod another owner, breaks what the proof assumes. Then two may run under one
// id, and not for good. A controller that sees both has neither begin beside the other.
func TestWhatTheProofDoesNotAssumeHeals(t *testing.T) {
	check(t, map[string]budget{
		"a receipt is removed":          {pods: 2, slots: 1, controllers: 1, writes: 4, unanswered: 1, removed: 1},
		"removed, and any plan":         {pods: 2, slots: 1, controllers: 1, writes: 4, removed: 1, deletions: 1, wild: true},
		"removed, and two leaders":      {pods: 2, slots: 1, controllers: 2, writes: 2, removed: 1},
		"another owner's pod":           {pods: 2, slots: 1, controllers: 1, writes: 4, unanswered: 1, adopted: true},
		"another owner's, two leaders":  {pods: 2, slots: 1, controllers: 2, writes: 3, adopted: true},
		"another owner's and two slots": {pods: 2, slots: 2, controllers: 1, writes: 4, unanswered: 1, adopted: true, wild: true},
	})
}

func TestEachStepThatIsLeftOutIsMissed(t *testing.T) {
	one := budget{pods: 2, slots: 1, controllers: 1, writes: 4, unanswered: 1, wild: true}
	two := budget{pods: 2, slots: 1, controllers: 2, writes: 3}
	agents := budget{pods: 2, slots: 1, controllers: 1, agents: 2, writes: 3, crashes: 1}
	for without, worlds := range map[step][]budget{
		unlisted: {agents}, anyBytes: {agents},
		noList: {one, two}, fromCache: {two, agents}, sameBytes: {one, two}, noTest: {one}, noSwap: {one}, forgets: {one, two}, byGate: {one, two},
	} {
		for _, b := range worlds {
			t.Run(string(without), func(t *testing.T) {
				b.without = without
				r := search(b)
				if r.two == nil {
					t.Fatalf("no state out of %d shows it", r.states)
				}
				t.Logf("%d states\n%s", r.states, strings.Join(r.two, "\n"))
			})
		}
	}
}

func TestEachStepWithoutWhichPodsWaitIsMissed(t *testing.T) {
	b := budget{pods: 2, slots: 1, controllers: 2, writes: 3}
	for without, removed := range map[step]uint8{noRetreat: 0, noRemoval: 1, noConfirm: 0} {
		b.without, b.removed = without, removed
		if b.agents = 0; without == noConfirm {
			b.agents = 1
		}
		r := search(b)
		if r.stuck == nil {
			t.Errorf("%s: no state out of %d shows it", without, r.states)
		}
		t.Logf("%s\n%s", without, strings.Join(r.stuck, "\n"))
	}
}
