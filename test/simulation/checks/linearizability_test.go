package checks

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is an operation on id 3 from one second to another; -1 is never.
func op(call, back int, i input) porcupine.Operation {
	i.id = 3
	o := porcupine.Operation{Input: i, Call: int64(time.Duration(call) * time.Second), Return: int64(time.Duration(back) * time.Second)}
	if back < 0 {
		o.Return = never
	}
	return o
}

func claim(process, pod string, token int64) input {
	return input{deed: claimed, process: process, pod: pod, token: token}
}

func free(how deed, process string) input { return input{deed: how, process: process} }

func sweep(pod string) input { return input{deed: swept, pod: pod} }

func TestVerdict(t *testing.T) {
	unordered := claim("b#1", "b", 5)
	unordered.unordered = true
	cases := []struct {
		name string
		ops  []porcupine.Operation
		want porcupine.CheckResult
	}{
		{"one after the other", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 3, free(released, "a#1")), op(0, 4, claim("b#1", "b", 6))}, porcupine.Ok},
		{"two holders at once", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(0, 4, claim("b#1", "b", 6)), op(5, 6, free(released, "a#1"))}, porcupine.Illegal},
		{"a claim of an id that is held for ever", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 4, claim("b#1", "b", 6))}, porcupine.Illegal},
		{"a token that goes backwards", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 3, free(released, "a#1")), op(0, 4, claim("b#1", "b", 4))}, porcupine.Illegal},
		{"a token that is used again", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 3, free(released, "a#1")), op(0, 4, claim("b#1", "b", 5))}, porcupine.Illegal},
		{"a token that fell where nothing orders tokens", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 3, free(released, "a#1")), op(0, 4, unordered)}, porcupine.Ok},
		{"a restarted process has its token again", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, -1, free(died, "a#1")), op(3, 4, claim("a#2", "a", 5))}, porcupine.Ok},
		{"two processes of one pod", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(3, 4, claim("a#2", "a", 6))}, porcupine.Illegal},
		{"a release of what nobody claimed", []porcupine.Operation{op(0, 1, free(released, "a#1"))}, porcupine.Illegal},
		{"a release that is counted twice", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, 3, free(released, "a#1")), op(4, 5, free(died, "a#1"))}, porcupine.Illegal},
		{"a sweep after the death", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, -1, free(died, "a#1")), op(3, 3, sweep("a"))}, porcupine.Ok},
		{"a sweep before the death", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(3, 3, sweep("a")), op(4, -1, free(died, "a#1"))}, porcupine.Illegal},
		{"a claim while the work may have stopped", []porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), op(2, -1, free(released, "a#1")), op(0, 2, claim("b#1", "b", 6))}, porcupine.Ok},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := verdict(c.ops); got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, tellOperations(c.ops))
			}
		})
	}
}

func TestVerdictOfAnotherIDDoesNotCount(t *testing.T) {
	other := op(0, 1, claim("b#1", "b", 5))
	other.Input = input{id: 4, deed: claimed, process: "b#1", pod: "b", token: 5}
	if got := verdict([]porcupine.Operation{op(0, 1, claim("a#1", "a", 5)), other}); got != porcupine.Ok {
		t.Errorf("two ids, two holders: %s", got)
	}
}

// A search that is not finished is no pass: many claims that all overlap, and one that can never happen.
func TestVerdictIsNotKnownWithoutEnoughSteps(t *testing.T) {
	ops := make([]porcupine.Operation, 0, 29)
	for i := range 14 {
		name := string(rune('a' + i))
		ops = append(ops, op(0, 100, claim(name, name, int64(i+1))), op(0, 100, free(released, name)))
	}
	ops = append(ops, op(0, 100, free(released, "nobody")))
	if got := verdict(ops); got != porcupine.Unknown {
		t.Errorf("%s, want %s", got, porcupine.Unknown)
	}
}

func TestShortest(t *testing.T) {
	ops := []porcupine.Operation{
		op(0, 1, claim("a#1", "a", 5)), op(2, 30, free(released, "a#1")), op(0, 4, claim("b#1", "b", 6)), op(5, 6, claim("c#1", "c", 7)),
		op(8, 9, free(released, "b#1")), op(10, 11, free(released, "c#1")),
	}
	if got := shortest(ops); len(got) != 4 {
		t.Errorf("the first four do not fit, got: %s", tellOperations(got))
	}
}
