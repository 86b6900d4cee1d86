package inspect

import (
	"testing"
	"time"
)

// A chart is uninstalled and installed again. The pods run on, and the API server does not accept their tokens.
func TestPodsWhoseServiceAccountWasMadeAgainAreWarnedOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(n *snapshot)
		warns  string
	}{
		"the account is older":             {change: func(n *snapshot) { n.accounts[worker] = n.pods["a"].Created.Add(-time.Hour) }},
		"it may not be read":               {change: func(n *snapshot) { n.accounts[worker] = time.Time{} }},
		"it was made again":                {change: func(*snapshot) {}, warns: "service account worker was made again after these pods had started: a, b, c. The API server refuses their tokens"},
		"a pod was made after it":          {change: func(n *snapshot) { n.edit("b", func(p *pod) { p.Created = n.now }) }, warns: "had started: a, c."},
		"a pod is of another account":      {change: func(n *snapshot) { n.edit("a", func(p *pod) { p.account = "other" }) }, warns: "had started: b, c."},
		"the kubelet has written new ones": {change: func(n *snapshot) { n.accounts[worker] = n.now.Add(-2 * time.Hour); n.born(n.now.Add(-3 * time.Hour)) }},
	} {
		n := settledPods(3)
		n.born(n.now.Add(-30 * time.Minute))
		n.accounts = map[string]time.Time{worker: n.now.Add(-time.Minute)}
		tc.change(&n)
		r := reported(n)
		if !r.OK || (tc.warns == "") != (len(r.Warnings) == 0) {
			t.Errorf("%s: found %+v, warns %q", name, r.Findings, r.Warnings)
			continue
		}
		if tc.warns != "" {
			saysAll(t, name, r.Warnings, []string{tc.warns})
		}
	}
}

// born has all pods run since then, under the account worker.
func (n *snapshot) born(at time.Time) {
	for name := range n.pods {
		n.edit(name, func(p *pod) { p.Created, p.account = at, worker })
	}
}
