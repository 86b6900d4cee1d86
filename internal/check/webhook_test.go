package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// An account that may not list webhooks does not know whether one completes pods.
func TestAWebhookThatMayNotBeSeenIsNotMissing(t *testing.T) {
	const hook = `{"metadata":{"name":"idalloc-webhook"}}`
	for name, tc := range map[string]struct {
		server    string
		forbidden bool
		hooks     string
		policies  int // the status code of the answer about policies
		gated     verdict
		want      [2]string // the rows of the policies that complete pods: with an id, and with the sidecar
	}{
		"a webhook": {"v1.35.4", false, hook, http.StatusNotFound, verdict{}, [2]string{"installed. the webhook idalloc-webhook does it", "installed. the webhook idalloc-webhook does it"}},
		"none":      {"v1.35.4", false, "", http.StatusNotFound, verdict{}, [2]string{"absent. needs Kubernetes 1.36, or the webhook", "absent. needs Kubernetes 1.36, or the webhook"}},
		"it may not be seen": {
			"v1.35.4", true, hook, http.StatusNotFound, verdict{},
			[2]string{"unknown. you may not list mutatingwebhookconfigurations, so it is not known whether a webhook completes pods", "unknown. you may not list mutatingwebhookconfigurations"},
		},
		"but a pod shows it": {
			"v1.35.4", true, hook, http.StatusNotFound, verdict{yes: true},
			[2]string{"in force. a dry run in namespace shop shows it", "unknown. you may not list mutatingwebhookconfigurations"},
		},
		"it may be in place of the policies": {
			newest, true, hook, http.StatusNotFound, verdict{},
			[2]string{"unknown. you may not list mutatingwebhookconfigurations", "unknown. you may not list mutatingwebhookconfigurations"},
		},
		"there are policies": {newest, true, "", http.StatusOK, verdict{yes: true}, [2]string{"in force. a dry run", "installed. "}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case !strings.HasSuffix(r.URL.Path, "/mutatingwebhookconfigurations"):
				w.WriteHeader(tc.policies)
				_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"MutatingAdmissionPolicyBinding","spec":{"policyName":%q}}`, pathOf(r)) //nolint:gosec // a server of this test
			case tc.forbidden:
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","reason":"Forbidden","code":403}`))
			default:
				_, _ = w.Write([]byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfigurationList","items":[` + tc.hooks + `]}`))
			}
		}))
		s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
		if err != nil {
			t.Fatal(err)
		}
		c, rows := checker{Options{Dynamic: s.Dynamic, Server: tc.server, Namespace: "shop"}}, []string{}
		for _, p := range policies(found{name: controllerName, injects: sidecars}) {
			if !p.mutating {
				continue
			}
			row, err := c.policy(t.Context(), p, trial{gated: tc.gated})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(row.State)+". "+row.Detail)
		}
		for k, want := range tc.want {
			if len(rows) != len(tc.want) || !strings.HasPrefix(rows[k], want) {
				t.Errorf("%s: rows are %q, not %q", name, rows, tc.want)
			}
		}
		server.Close()
	}
}
