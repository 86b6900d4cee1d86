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

// newest is a version of the API server that has all that is checked.
const newest = "v1.36.3"

// Any of several policies may be the first to refuse a pod without a gate. In namespaces without a controller one of them has to.
func TestAPodWithoutAGateIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		policy     string
		namespaces []string
		wrong      bool
	}{
		"by the controller's":             {"idalloc-assign", nil, true},
		"by what outlives the chart":      {"idalloc-gate", nil, true},
		"by it, for want of a controller": {"idalloc-gate", []string{"prod"}, false},
		"by another policy":               {"other", nil, false},
	} {
		sentence := "ValidatingAdmissionPolicy '" + tc.policy + "' with binding 'b' denied request: no gate"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422,"message":%q}`, sentence)
		}))
		s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
		if err != nil {
			t.Fatal(err)
		}
		c := checker{Options{Dynamic: s.Dynamic, Namespace: "shop", Server: newest}}
		got, err := c.tryPods(t.Context(), found{name: controllerName, namespaces: tc.namespaces})
		if err != nil || (got.gated.no != "") != tc.wrong || tc.wrong == strings.Contains(got.untried, sentence) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		server.Close()
	}
}

// Pods of a later chart wait for its controller.
func TestPodsOfALaterContractAreFound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"idalloc.dev/contract":"2"}},"spec":{"schedulingGates":[{"name":"idalloc.dev/id"}]}}`)
	}))
	t.Cleanup(server.Close)
	s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
	if err != nil {
		t.Fatal(err)
	}
	c := checker{Options{Dynamic: s.Dynamic, Namespace: "shop", Server: newest}}
	got, err := c.tryPods(t.Context(), found{name: controllerName})
	if err != nil || got.gated.yes || !strings.Contains(got.gated.no, "idalloc.dev/contract: 2, and this program knows contracts up to 1: upgrade the controller") {
		t.Errorf("%+v, %v", got, err)
	}
}
