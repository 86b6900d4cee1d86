package inspect

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

func TestPolicyMissing(t *testing.T) {
	const path = "GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	for name, tc := range map[string]struct {
		at, action string
		code       int
		want       string
	}{
		"in force":             {"", "Deny", 0, ""},
		"no policy":            {path + "ies/idalloc", "Deny", http.StatusNotFound, "has no validatingadmissionpolicies/idalloc, so"},
		"no binding of Leases": {path + "ybindings/idalloc-leases", "Deny", http.StatusNotFound, "has no validatingadmissionpolicybindings/idalloc-leases, so"},
		"nobody may see it":    {path + "ies/idalloc", "Deny", http.StatusForbidden, "may not get validatingadmissionpolicies/idalloc, so nobody can tell here"},
		"it only warns":        {"", "Warn", 0, "validationActions of validatingadmissionpolicybindings/idalloc lack Deny"},
		"no answer":            {path + "ies/idalloc", "Deny", http.StatusInternalServerError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method+" "+r.URL.Path == tc.at {
					w.WriteHeader(tc.code)
				}
				_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Any","spec":{"validationActions":[%q]}}`, tc.action)
			}))
			t.Cleanup(server.Close)
			s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
			if err != nil {
				t.Fatal(err)
			}
			got := PolicyMissing(t.Context(), s)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || got != "" && !strings.Contains(got, "kubectl apply -k config/policy") {
				t.Errorf("says %q", got)
			}
		})
	}
}
