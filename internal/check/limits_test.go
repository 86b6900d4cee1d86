package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// binds is a spec that is right for a binding.
const binds = `"policyName":"NAME","validationActions":["Deny"]`

func pathOf(r *http.Request) string { return path.Base(r.URL.Path) }

func TestPolicyMissing(t *testing.T) {
	const at = "GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	for name, tc := range map[string]struct {
		at, spec string
		code     int
		want     string
	}{
		"in force":             {"", binds, 0, ""},
		"no policy":            {at + "ies/idalloc", binds, http.StatusNotFound, "has no validatingadmissionpolicies/idalloc, so"},
		"no binding of Leases": {at + "ybindings/idalloc-leases", binds, http.StatusNotFound, "has no validatingadmissionpolicybindings/idalloc-leases, so"},
		"no policy of Events":  {at + "ies/idalloc-events", binds, http.StatusNotFound, "has no validatingadmissionpolicies/idalloc-events, so"},
		"it may not be seen":   {at + "ies/idalloc", binds, http.StatusForbidden, "may not get validatingadmissionpolicies/idalloc, so it cannot be told here"},
		"it only warns":        {"", `"policyName":"NAME","validationActions":["Warn"]`, 0, "validatingadmissionpolicybindings/idalloc lacks Deny in its validationActions"},
		"of another policy":    {"", `"policyName":"other","validationActions":["Deny"]`, 0, "validatingadmissionpolicybindings/idalloc is for policy other"},
		"a narrowed binding":   {"", binds + `,"matchResources":{"namespaceSelector":{"matchLabels":{"a":"b"}}}`, 0, "validatingadmissionpolicybindings/idalloc leaves something out"},
		"an empty selector":    {"", binds + `,"matchResources":{"namespaceSelector":{},"matchPolicy":"Equivalent"}`, 0, ""},
		"it fails open":        {"", binds + `,"failurePolicy":"Ignore"`, 0, "validatingadmissionpolicies/idalloc lets a request pass that it cannot judge"},
		"a narrowed policy":    {"", binds + `,"matchConstraints":{"objectSelector":{"matchLabels":{"a":"b"}}}`, 0, "validatingadmissionpolicies/idalloc leaves something out"},
		"no answer":            {at + "ies/idalloc", binds, http.StatusInternalServerError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method+" "+r.URL.Path == tc.at {
					w.WriteHeader(tc.code)
				}
				kind := "ValidatingAdmissionPolicy"
				if strings.Contains(r.URL.Path, "bindings") {
					kind += "Binding"
				}
				_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":%q,"spec":{%s}}`, kind, strings.ReplaceAll(tc.spec, "NAME", pathOf(r))) //nolint:gosec // a server of this test
			}))
			t.Cleanup(server.Close)
			s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
			if err != nil {
				t.Fatal(err)
			}
			got := PolicyMissing(t.Context(), s)
			mend := "kubectl apply -k config/policy"
			if tc.code == 0 { // it is there, and apply leaves what others added to it
				mend = "kubectl replace -k config/policy"
			}
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || got != "" && !strings.Contains(got, mend) {
				t.Errorf("says %q", got)
			}
		})
	}
}

// In other namespaces the validating policy refuses the pods that would have no gate.
func TestAMutatingPolicyMayBeForSomeNamespaces(t *testing.T) {
	const selects = `"matchResources":{"namespaceSelector":{"matchLabels":{"a":"b"}}}`
	for spec, want := range map[string]Row{
		selects: {State: Installed, Detail: "for some namespaces only (namespaceSelector of its binding), and not for shop"},
		`"matchResources":{"objectSelector":{"matchLabels":{"a":"b"}}}`: {State: Broken, Detail: "mutatingadmissionpolicybindings/idalloc-assign leaves something out (matchResources or paramRef)"},
		`"matchResources":{}`: {State: Broken, Detail: "no gate"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			kind := "MutatingAdmissionPolicy"
			if strings.Contains(r.URL.Path, "bindings") {
				kind += "Binding"
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":%q,"spec":{"policyName":"idalloc-assign",%s}}`, kind, spec)
		}))
		s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
		if err != nil {
			t.Fatal(err)
		}
		c := checker{Options{Dynamic: s.Dynamic, Namespace: "shop", Server: newest}}
		assign := policy{name: "idalloc-assign", mutating: true, folder: "assign", tried: func(t trial) verdict { return t.gated }}
		got, err := c.policy(t.Context(), assign, trial{gated: verdict{no: "no gate"}})
		if err != nil || got.State != want.State || got.Detail != want.Detail {
			t.Errorf("%s: %+v, %v", spec, got, err)
		}
		server.Close()
	}
}
