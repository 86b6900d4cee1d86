package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestNodesThatCannotRestartPodsAreNamed(t *testing.T) {
	const can, cannot = `{"metadata":{"name":"new"},"status":{"declaredFeatures":["A","RestartAllContainersOnContainerExits"]}}`, `{"metadata":{"name":"old"},"status":{}}`
	for _, tc := range []struct {
		server, nodes string
		state         State
		says          string
	}{
		{newest, can, Installed, "all 1 nodes"},
		{newest, can + "," + cannot, Absent, "1 of 2 nodes, such as old,"},
		{"v1.35.4", can, Absent, "the API server needs Kubernetes 1.36"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","items":[%s]}`, tc.nodes)
		}))
		client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		c := checker{Options{Dynamic: client, Namespace: "shop", Server: tc.server}}
		row, err := c.restarts(t.Context())
		if err != nil || row.State != tc.state || !strings.Contains(row.Detail, tc.says) {
			t.Errorf("%s with %s: %+v, %v", tc.server, tc.nodes, row, err)
		}
		server.Close()
	}
}
