package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

func TestWhatAgentsMayDo(t *testing.T) {
	const pods = `{"apiVersion":"v1","kind":"PodList","items":[{"spec":{"serviceAccountName":"worker"}},{"spec":{"serviceAccountName":"worker"}}]}`
	for name, tc := range map[string]struct {
		pods, lacks string
		forbidden   string
		state       State
		says        string
	}{
		"there are none":                {pods: `{"apiVersion":"v1","kind":"PodList","items":[]}`, state: Absent, says: "enable KIND/NAME --by=agent"},
		"they may do what they need":    {pods: pods, state: InForce, says: "2 pods in namespace shop, service account worker"},
		"they may not patch themselves": {pods: pods, lacks: `"patch"`, state: Broken, says: "service account worker in namespace shop may not patch pods: "},
		"no policy limits them":         {pods: pods, lacks: `"allocate"`, state: Broken, says: "may not allocate slots.idalloc.dev: "},
		"pods may not be listed":        {pods: pods, forbidden: "/pods", state: Unknown, says: "may not list pods"},
		"their rights may not be asked": {pods: pods, forbidden: "/subjectaccessreviews", state: Unknown, says: "may not create subjectaccessreviews"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case tc.forbidden != "" && strings.HasSuffix(r.URL.Path, tc.forbidden):
					w.WriteHeader(http.StatusForbidden)
					_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","reason":"Forbidden","code":403}`))
				case r.Method == http.MethodGet && r.URL.Query().Get("labelSelector") == "idalloc.dev/assign=agent":
					_, _ = w.Write([]byte(tc.pods))
				default:
					asked := make([]byte, 4096)
					n, _ := r.Body.Read(asked)
					allowed := "true"
					if text := string(asked[:n]); !strings.Contains(text, "system:serviceaccount:shop:worker") || tc.lacks != "" && strings.Contains(text, tc.lacks) {
						allowed = "false"
					}
					_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":` + allowed + `}}`))
				}
			}))
			t.Cleanup(server.Close)
			s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
			if err != nil {
				t.Fatal(err)
			}
			c := checker{Options{Dynamic: s.Dynamic, Namespace: "shop"}}
			row, err := c.agents(t.Context())
			if err != nil || row.State != tc.state || !strings.Contains(row.Detail, tc.says) {
				t.Errorf("%+v, %v", row, err)
			}
		})
	}
}

// tenant is the Deployment of a controller for some namespaces.
func tenant(namespaces, available string) string {
	return `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"args":["--namespace=` + namespaces + `"]}]}}},"status":{"availableReplicas":` + available + `}}`
}

func TestIfNoControllerWorks(t *testing.T) {
	const replicas = `{"spec":{"replicas":2},"status":{"availableReplicas":%}}`
	for name, tc := range map[string]struct {
		items, want string
		code        int
	}{
		"none":               {"", "wait until it works, and it is missing: no Deployment idalloc-controller: install the chart", http.StatusOK},
		"it does not run":    {strings.Replace(replicas, "%", "0", 1), "wait until it works, and it is broken: 0 of 2 replicas are available", http.StatusOK},
		"it works":           {strings.Replace(replicas, "%", "1", 1), "", http.StatusOK},
		"others' namespaces": {tenant("market", "1"), "1 give ids in other namespaces, and none in shop", http.StatusOK},
		"one of two is ours": {tenant("market", "0") + "," + tenant("shop", "1"), "", http.StatusOK},
		"two serve it":       {tenant("market,shop", "1") + "," + tenant("shop", "1"), "broken: 2 Deployments of it give ids in namespace shop", http.StatusOK},
		"it may not be seen": {"", "", http.StatusForbidden},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tc.code)
			if tc.code == http.StatusForbidden {
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","reason":"Forbidden","code":403}`))
				return
			}
			_, _ = w.Write([]byte(`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[` + tc.items + `]}`))
		}))
		s, err := store.New(&rest.Config{Host: server.URL}, testclock.NewFakeClock(apifake.Born()))
		if err != nil {
			t.Fatal(err)
		}
		if got := ControllerMissing(t.Context(), s, "shop"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
		server.Close()
	}
}
