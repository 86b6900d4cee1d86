package inspect

import (
	"strings"
	"testing"
)

const waits = "waits for an id"

func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *snapshot)
		pod    string
		// verdict and says are parts of the texts. An empty says stands for no reasons.
		verdict, says string
	}{
		"a holder":                   {func(*snapshot) {}, "a", "has id 0 of Deployment/worker", ""},
		"a holder that is asked":     {func(n *snapshot) { n.owner.Record.State.Handover = map[int]string{0: "z"} }, "a", "has id 0", "pod z of a newer revision asks"},
		"a holder above the count":   {func(n *snapshot) { n.owner.Count = 1 }, "b", "has id 1", "the count is 1"},
		"one that has ended":         {func(n *snapshot) { n.edit("a", func(p *pod) { p.phase = "Succeeded" }) }, "a", "has ended (Succeeded)", ""},
		"an entry without a receipt": {func(n *snapshot) { n.unlock("a") }, "a", "has not locked it yet", ""},
		"scaled to 0":                {func(n *snapshot) { n.owner.Count = 0; n.add("z") }, "z", waits, "scaled to 0"},
		"a surge":                    {func(n *snapshot) { n.add("z"); n.edit("z", func(p *pod) { p.Receipt = waiting() }) }, "z", waits, "they live (a, b)"},
		"nothing of idalloc":         {func(n *snapshot) { n.add("z") }, "z", waits, "idalloc has written nothing on the pod"},
		"the predecessor ends": {func(n *snapshot) {
			n.add("z")
			n.edit("b", func(p *pod) { p.Terminating = true })
		}, "z", waits, "until they have given it back or are gone: b"},
		"a relabelled holder": {func(n *snapshot) {
			n.add("z")
			n.edit("b", func(p *pod) { p.Owned = false })
		}, "z", waits, "relabelled, and with an id until they are deleted: b"},
		"a hand-over":   {func(n *snapshot) { n.add("z"); n.owner.Record.State.Handover = map[int]string{1: "z"} }, "z", waits, "has asked pod b for id 1"},
		"a free id":     {func(n *snapshot) { n.free(1); n.add("z") }, "z", waits, "id 1 is free while pod z waits"},
		"an ordinal":    {func(n *snapshot) { n.add("z"); n.edit("z", func(p *pod) { p.Ordinal = 1 }) }, "z", waits, "which pod b has"},
		"Terminating":   {func(n *snapshot) { n.add("z"); n.edit("z", func(p *pod) { p.Terminating = true }) }, "z", "gets no id any more", ""},
		"a dead holder": {func(n *snapshot) { n.add("z"); delete(n.pods, "b") }, "z", waits, "which is gone"},
	} {
		n := settledPods(2)
		tc.change(&n)
		e := n.explain(tc.pod)
		if reasons := strings.Join(e.Reasons, "\n"); !strings.Contains(e.Verdict, tc.verdict) || !strings.Contains(reasons, tc.says) || (tc.says == "" && reasons != "") {
			t.Errorf("%s: %s\n%s", name, e.Verdict, reasons)
		}
	}
}

func TestWhatIsWrongWithAContainer(t *testing.T) {
	for want, status := range map[string]map[string]any{
		"": {"name": "main", "state": map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}}},
		"container main does not start: ErrImagePull: no such image": {"name": "main", "state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull", "message": "no such image"}}},
		"container idalloc ended with exit code 4: Error: error: forbidden": {
			"name": "idalloc", "lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(4), "reason": "Error", "message": "error: forbidden"}},
		},
	} {
		if got := strings.Join(containerOf(status), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
